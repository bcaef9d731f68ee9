// Decompresses a file piece by piece, in bounded memory: gzip (several members, one after the other) and zstd (several
// frames). Not thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <memory>
#include <string_view>

namespace medley::worker {

class Decompressor {
 public:
  virtual ~Decompressor() = default;

  // As in sentences: "gzip".
  virtual const char* format() const = 0;
  // Decompresses from the beginning of `in` and removes what it used. Returns how many of the `bytes` bytes at `to` it
  // wrote; `bytes` is not 0. Uses or writes something, unless `in` is empty. Errors: DataLoss.
  virtual absl::StatusOr<size_t> Decompress(std::string_view& in, char* to, size_t bytes) = 0;
  // Whether the file may end after what was used.
  virtual bool complete() const = 0;
};

// The one for a file that begins with these bytes, at least four where it has so many; null for one that is not
// compressed. Frames of zstd that need more than 128 MiB of memory are refused.
std::unique_ptr<Decompressor> MakeDecompressor(std::string_view beginning);

// The compression that the ending of a file's name promises, as in sentences; null when it promises none.
const char* CompressionOfName(std::string_view name);

}  // namespace medley::worker
