// A file of this process for data that need not be in memory, written and read at positions. Move-only; calls of const
// functions are thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <utility>

namespace medley::worker {

class BlockFile {
 public:
  // Without a name: the file ends with the process. Errors: those of creating a file in `folder`.
  static absl::StatusOr<BlockFile> CreateUnnamed(const std::filesystem::path& folder);
  // A new file with a name that begins so, which only this user reads, locked (flock) until it is closed.
  static absl::StatusOr<BlockFile> Create(const std::filesystem::path& prefix);
  static absl::StatusOr<BlockFile> Open(const std::filesystem::path& path);
  // Another handle of the same file, `name` in messages. Errors: those of dup.
  absl::StatusOr<BlockFile> Duplicate(std::filesystem::path name) const;
  BlockFile(BlockFile&& other) noexcept : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}
  BlockFile& operator=(BlockFile&&) = delete;
  ~BlockFile();

  // Errors: ResourceExhausted when the disk is full; those of writing.
  absl::Status WriteAt(int64_t at, std::string_view bytes);
  // Errors: DataLoss when the file is shorter; those of reading.
  absl::Status ReadAt(int64_t at, std::span<char> bytes) const;
  absl::StatusOr<int64_t> Size() const;
  absl::StatusOr<int64_t> ChangedAt() const;  // ns since 1970
  int fd() const { return fd_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  BlockFile(std::filesystem::path path, int fd) : path_(std::move(path)), fd_(fd) {}

  std::filesystem::path path_;
  int fd_ = -1;
};

template <typename T>
std::string_view BytesOf(std::span<const T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace medley::worker
