// File names and manifest of a checkpoint on disk. ROOT/step-N-eG/ holds the data files and manifest.json, which is
// written last: a folder without a manifest is not a checkpoint.
//
// N is the step and G the generation that writes. So a member of an earlier generation that resumes late writes into
// another folder, and cannot change what a newer generation has written or published.
//
// Immutable values and pure functions, thread-safe. The binary format of data files is in format.h.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace medley::worker {

// The job and model whose state a checkpoint holds.
struct CheckpointOwner {
  std::string job_uid;
  std::string model_fingerprint;
  bool operator==(const CheckpointOwner&) const = default;
};

// A data file of a checkpoint. `name` is relative to the folder; `digest` is that of base::Hasher over the whole file.
struct CheckpointFileEntry {
  std::string name;
  int64_t bytes = 0;
  std::string digest;
  bool operator==(const CheckpointFileEntry&) const = default;
};

// The content of manifest.json. The ledger (rows, data_epochs, batch_size) and `step` say which samples the state
// contains. The last line of the file holds a digest of the others.
struct CheckpointManifest {
  std::string job_uid;
  std::string model_fingerprint;
  int64_t generation = 0;  // the generation that wrote it
  int64_t step = 0;
  int64_t rows = 0;
  int32_t data_epochs = 0;
  int32_t batch_size = 0;
  std::string folder;  // "step-N-eG", relative to the root
  std::vector<CheckpointFileEntry> files;
  // The parts of the job's spec that the fingerprint covers, as a JSON object, by which a refusal names what differs;
  // empty: an earlier version wrote it. At most kMaxSettings (settings.h).
  std::string settings;
  // The job and generation that wrote the files of an imported checkpoint; an empty uid: those above.
  std::string origin_uid;
  int64_t origin_generation = 0;
  bool operator==(const CheckpointManifest&) const = default;
};

// What the name of a checkpoint's folder says. The order is that of age: of two checkpoints, the one of the newer
// generation continues the training that counts, even if its step is smaller.
struct CheckpointName {
  int64_t generation = 0;  // 0: written by an earlier version, whose folders are named "step-N"
  int64_t step = 0;
  int attempt = 0;  // counts the attempts of one generation to save one step
  auto operator<=>(const CheckpointName&) const = default;
};

// Returns for example "step-00000042-e3", "step-00000042-e3-1" for the second attempt, or "step-00000042" for
// generation 0.
std::string CheckpointFolder(const CheckpointName& name);
// The inverse of CheckpointFolder; InvalidArgument for any other name.
absl::StatusOr<CheckpointName> ParseCheckpointFolder(std::string_view folder);

// "dense-e3-t1.mck": file of the trainer that is device 1 of the program, written by generation 3.
std::string DenseFileName(int64_t generation, int device);
// "rows-e3-2.mck": file of shard 2.
std::string RowsFileName(int64_t generation, int shard);

inline constexpr int64_t kMaxManifest = int64_t{4} << 20;  // bytes
inline constexpr size_t kMaxManifestFiles = 8192;          // a job has at most 4096 members

std::string ToJson(const CheckpointManifest& manifest);
// Errors: DataLoss naming the field, or saying that a byte of the file was changed or that it is larger than any
// manifest. Another process may have written it: what it becomes in memory is bounded too.
absl::StatusOr<CheckpointManifest> ParseManifest(std::string_view json);

}  // namespace medley::worker
