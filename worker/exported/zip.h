// The entries of a zip file in memory. Strict: a file that two readers could understand differently is refused.
//
// Own code because the weights must be used where the file is mapped, and libraries do not tell where an entry's bytes
// are. Decompression is zlib's. Immutable; thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>

namespace medley::worker::exported {

class Zip {
 public:
  struct Entry {
    std::span<const std::byte> stored;  // as it is in the file, perhaps compressed
    uint64_t size = 0;                  // of the contents
    uint32_t crc = 0;                   // of the contents
    bool deflated = false;
  };

  // `file` must outlive the Zip. Reads only the directory and the headers of entries. Errors: InvalidArgument for a
  // file that is cut off, entries that overlap, lie outside of the file or have one name, names that are absolute or
  // have "..", a directory that differs from the headers, encrypted entries, and other compressions than deflate.
  static absl::StatusOr<Zip> Open(std::span<const std::byte> file);

  const std::map<std::string, Entry>& entries() const { return entries_; }
  const Entry* Find(const std::string& name) const;

  // The contents, with their checksum verified. Errors: NotFound; InvalidArgument for more than `most` bytes, for a
  // wrong checksum, and for a compression that ends early or late.
  absl::StatusOr<std::string> Read(const std::string& name, size_t most) const;

 private:
  std::map<std::string, Entry> entries_;
};

}  // namespace medley::worker::exported
