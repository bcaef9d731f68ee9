#include "worker/data/block_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "common/base/file.h"
#include "common/base/status.h"

namespace medley::worker {

absl::StatusOr<BlockFile> BlockFile::CreateUnnamed(const std::filesystem::path& folder) {
  const int unnamed = open(folder.c_str(), O_RDWR | O_TMPFILE | O_EXCL | O_CLOEXEC, 0600);
  if (unnamed >= 0) return BlockFile(folder / "rows", unnamed);
  // Not every file system has such files. RemoveUnfinished finds one whose process is killed before it has no name.
  std::string name = (folder / "unfinished-XXXXXX").string();
  const int fd = mkostemp(name.data(), O_CLOEXEC);
  if (fd < 0) return base::ErrnoStatus(errno, "creating a file in " + folder.string());
  unlink(name.c_str());
  return BlockFile(name, fd);
}

absl::StatusOr<BlockFile> BlockFile::Create(const std::filesystem::path& prefix) {
  std::string name = prefix.string() + "XXXXXX";
  const int fd = mkostemp(name.data(), O_CLOEXEC);
  if (fd < 0) return base::ErrnoStatus(errno, "creating " + name);
  BlockFile file(name, fd);
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) return base::ErrnoStatus(errno, "locking " + name);
  return file;
}

absl::StatusOr<BlockFile> BlockFile::Open(const std::filesystem::path& path) {
  MEDLEY_ASSIGN_OR_RETURN(const int fd, base::OpenRegularFile(path));
  return BlockFile(path, fd);
}

absl::StatusOr<BlockFile> BlockFile::Duplicate(std::filesystem::path name) const {
  const int fd = fcntl(fd_, F_DUPFD_CLOEXEC, 0);
  if (fd < 0) return base::ErrnoStatus(errno, "opening " + path_.string() + " again");
  return BlockFile(std::move(name), fd);
}

BlockFile::~BlockFile() {
  if (fd_ >= 0) close(fd_);
}

absl::Status BlockFile::WriteAt(int64_t at, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(fd_, bytes.data(), bytes.size(), at);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return base::ErrnoStatus(written == 0 ? ENOSPC : errno, "writing " + path_.string());
    bytes.remove_prefix(static_cast<size_t>(written));
    at += written;
  }
  return absl::OkStatus();
}

absl::Status BlockFile::ReadAt(int64_t at, std::span<char> bytes) const {
  while (!bytes.empty()) {
    const ssize_t read = pread(fd_, bytes.data(), bytes.size(), at);
    if (read < 0 && errno == EINTR) continue;
    if (read < 0) return base::ErrnoStatus(errno, "reading " + path_.string());
    if (read == 0) return base::DataLoss("{}: the file ends too early", path_.string());
    bytes = bytes.subspan(static_cast<size_t>(read));
    at += read;
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> BlockFile::Size() const {
  struct stat status = {};
  if (fstat(fd_, &status) != 0) return base::ErrnoStatus(errno, "reading " + path_.string());
  return static_cast<int64_t>(status.st_size);
}

absl::StatusOr<int64_t> BlockFile::ChangedAt() const {
  struct stat status = {};
  if (fstat(fd_, &status) != 0) return base::ErrnoStatus(errno, "reading " + path_.string());
  return int64_t{status.st_ctim.tv_sec} * 1'000'000'000 + status.st_ctim.tv_nsec;
}

}  // namespace medley::worker
