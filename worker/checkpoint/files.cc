#include "worker/checkpoint/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "common/base/file.h"
#include "common/base/status.h"

namespace medley::worker {
namespace {

namespace fs = std::filesystem;

absl::Status SyncFolder(const fs::path& folder) {
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return base::ErrnoStatus(errno, "opening " + folder.string());
  const int result = fsync(fd);
  const int error = errno;
  close(fd);
  return result == 0 ? absl::OkStatus() : base::ErrnoStatus(error, "fsync " + folder.string());
}

// What is wrong with the path stays wrong: it is damage, and no error that may pass.
bool IsBroken(int error) { return error == ENOTDIR || error == ELOOP || error == ENAMETOOLONG; }

fs::path Parent(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

}  // namespace

absl::StatusOr<std::vector<std::string>> Files::List(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    names.push_back(at->path().filename().string());
  }
  if (error) return base::ErrnoStatus(error.value(), "listing " + folder.string());
  return names;
}

absl::StatusOr<FileStamp> Files::Stat(const fs::path& path) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0) {
    const int error = errno;
    const absl::Status status = base::ErrnoStatus(error, "looking at " + path.string());
    return IsBroken(error) ? base::DataLoss("{}", base::Message(status)) : status;
  }
  return FileStamp{found.st_size, found.st_mtim.tv_sec * 1'000'000'000 + found.st_mtim.tv_nsec};
}

absl::StatusOr<int> Files::OpenToRead(const fs::path& path) {
  absl::StatusOr<int> fd = base::OpenRegularFile(path);
  // A pipe in the place of a checkpoint's file is damage, and no error that may pass.
  if (absl::IsInvalidArgument(fd.status())) return base::DataLoss("{}", base::Message(fd.status()));
  if (absl::IsInternal(fd.status())) MEDLEY_RETURN_IF_ERROR(Stat(path).status());
  return fd;
}

absl::StatusOr<size_t> Files::Read(int fd, void* out, size_t bytes) {
  while (true) {
    const ssize_t n = read(fd, out, bytes);
    if (n >= 0) return static_cast<size_t>(n);
    if (errno != EINTR) return base::ErrnoStatus(errno, "reading");
  }
}

absl::StatusOr<int64_t> Files::Length(int fd) {
  struct stat found {};
  if (fstat(fd, &found) != 0) return base::ErrnoStatus(errno, "looking at an open file");
  return found.st_size;
}

absl::Status Files::Skip(int fd, int64_t bytes) {
  return lseek(fd, bytes, SEEK_CUR) >= 0 ? absl::OkStatus() : base::ErrnoStatus(errno, "skipping a part of a file");
}

void Files::Close(int fd) { close(fd); }

absl::Status Files::CreateFolder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return base::ErrnoStatus(error.value(), "creating " + folder.string());
  return SyncFolder(Parent(folder));  // also when another process created it and ended before its fsync
}

absl::StatusOr<int> Files::CreateTemporary(std::string& pattern) {
  const int fd = mkostemp(pattern.data(), O_CLOEXEC);
  if (fd < 0) return base::ErrnoStatus(errno, "creating " + pattern);
  return fd;
}

absl::StatusOr<int> Files::Create(const fs::path& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return base::ErrnoStatus(errno, "creating " + path.string());
  return fd;
}

absl::StatusOr<int> Files::OpenToAppend(const fs::path& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (fd < 0) return base::ErrnoStatus(errno, "opening " + path.string());
  return fd;
}

absl::Status Files::Write(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return base::ErrnoStatus(errno, "writing");
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

absl::Status Files::WriteAt(int fd, int64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = pwrite(fd, bytes.data(), bytes.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return base::ErrnoStatus(errno, "writing");
    bytes.remove_prefix(static_cast<size_t>(n));
    offset += n;
  }
  return absl::OkStatus();
}

absl::Status Files::Sync(int fd) {
  return fdatasync(fd) == 0 ? absl::OkStatus() : base::ErrnoStatus(errno, "fdatasync");
}

absl::Status Files::MakeReadable(int fd) {
  return fchmod(fd, 0644) == 0 ? absl::OkStatus() : base::ErrnoStatus(errno, "fchmod");
}

absl::Status Files::Rename(const fs::path& from, const fs::path& to) {
  if (rename(from.c_str(), to.c_str()) != 0) {
    return base::ErrnoStatus(errno, fmt::format("renaming {} to {}", from.string(), to.string()));
  }
  return SyncFolder(Parent(to));
}

absl::Status Files::Remove(const fs::path& path) {
  if (unlink(path.c_str()) == 0 || errno == ENOENT || errno == ENOTDIR) return absl::OkStatus();
  return base::ErrnoStatus(errno, "removing " + path.string());
}

absl::Status Files::RemoveFolder(const fs::path& folder) {
  std::error_code error;
  fs::remove_all(folder, error);
  return error ? base::ErrnoStatus(error.value(), "removing " + folder.string()) : absl::OkStatus();
}

bool Files::IsObject(const fs::path&) const { return false; }

absl::StatusOr<std::vector<std::string>> Files::Unfinished(const fs::path&) { return std::vector<std::string>(); }

absl::Status Files::RemoveUnfinished(const fs::path&) { return absl::OkStatus(); }

absl::StatusOr<std::string> Files::ReadWhole(const fs::path& path, int64_t max_bytes) {
  MEDLEY_ASSIGN_OR_RETURN(const int fd, OpenToRead(path));
  std::string bytes;
  std::string buffer(size_t{1} << 16, '\0');
  absl::Status status;
  while (true) {
    const absl::StatusOr<size_t> n = Read(fd, buffer.data(), buffer.size());
    status = n.status();
    if (!n.ok() || *n == 0) break;
    bytes.append(buffer, 0, *n);
    if (static_cast<int64_t>(bytes.size()) <= max_bytes) continue;
    status = base::ResourceExhausted("larger than {} bytes", max_bytes);
    break;
  }
  Close(fd);
  if (!status.ok()) return base::Annotate(status, path.string());
  return bytes;
}

absl::Status Files::WriteAtomic(const fs::path& path, std::string_view bytes) {
  std::string temporary = path.string() + ".tmp.XXXXXX";
  MEDLEY_ASSIGN_OR_RETURN(const int fd, CreateTemporary(temporary));
  absl::Status status = Write(fd, bytes);
  if (status.ok()) status = MakeReadable(fd);
  if (status.ok()) status = Sync(fd);
  Close(fd);
  if (!status.ok()) status = base::Annotate(status, temporary);
  if (status.ok()) status = Rename(temporary, path);
  if (!status.ok()) (void)Remove(temporary);
  return status;
}

absl::Status CopyFile(Files& files, const fs::path& from, const fs::path& to) {
  MEDLEY_ASSIGN_OR_RETURN(const int in, files.OpenToRead(from));
  std::string temporary = to.string() + ".tmp.XXXXXX";
  const absl::StatusOr<int> out = files.CreateTemporary(temporary);
  absl::Status status = out.status();
  if (out.ok()) {
    std::string buffer(size_t{1} << 20, '\0');
    while (status.ok()) {
      const absl::StatusOr<size_t> n = files.Read(in, buffer.data(), buffer.size());
      status = n.status();
      if (!n.ok() || *n == 0) break;
      status = files.Write(*out, std::string_view(buffer).substr(0, *n));
    }
    if (status.ok()) status = files.MakeReadable(*out);
    if (status.ok()) status = files.Sync(*out);
    files.Close(*out);
    if (status.ok()) status = files.Rename(temporary, to);
    if (!status.ok()) (void)files.Remove(temporary);
  }
  files.Close(in);
  return base::Annotate(status, "copying " + from.string());
}

Files& SystemFiles() {
  static Files files;
  return files;
}

}  // namespace medley::worker
