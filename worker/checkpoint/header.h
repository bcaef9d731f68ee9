// The header of a checkpoint's data file: whose state the file holds, of which step, and which part of it. A file that
// is moved into another checkpoint, or takes another one's name, is found by it.
//
//   header := magic "MDLYCKPT" (8 bytes)  version u32 (= 2)  length u32 (of the header)  generation i64  step i64
//             kind u32  shard i32  uid_bytes u32  fingerprint_bytes u32  uid  fingerprint  crc u32 (of all before)
//
// Pure functions, thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "worker/checkpoint/layout.h"

namespace medley::worker {

enum class CheckpointFileKind : uint32_t {
  kDense = 1,  // of a trainer; may hold rows too, when the plan has no parameter servers
  kRows = 2,   // of a parameter server
};

struct CheckpointFileHeader {
  CheckpointOwner owner;
  int64_t generation = 0;
  int64_t step = 0;
  CheckpointFileKind kind = CheckpointFileKind::kDense;
  int32_t shard = 0;  // device of a trainer in the program, index of a parameter server
  bool operator==(const CheckpointFileHeader&) const = default;
};

// "dense-e3-t1.mck" or "rows-e3-2.mck".
std::string FileName(const CheckpointFileHeader& header);

inline constexpr size_t kHeaderStart = 16;  // bytes that say how long the header is
inline constexpr size_t kMaxHeader = 4096;

// Errors: InvalidArgument (a uid or fingerprint is too long).
absl::StatusOr<std::string> EncodeHeader(const CheckpointFileHeader& header);
// The length of the header that begins with these kHeaderStart bytes, at most kMaxHeader. Errors: DataLoss (no
// checkpoint file, another version).
absl::StatusOr<size_t> HeaderLength(std::string_view start);
// `bytes` are the whole header and no more. Errors: those of HeaderLength; DataLoss (damaged).
absl::StatusOr<CheckpointFileHeader> DecodeHeader(std::string_view bytes);

// Checks that a file with this header is the one that the manifest calls `name`. Errors: DataLoss saying what differs.
absl::Status CheckBelongs(const CheckpointFileHeader& header, const std::string& name,
                          const CheckpointManifest& manifest);

}  // namespace medley::worker
