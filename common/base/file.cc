#include "common/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <functional>

#include "common/base/secrets.h"
#include "common/base/status.h"

namespace medley::base {
namespace {

constexpr mode_t kPublicFile = 0644;
constexpr mode_t kSecretFile = 0600;

class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() {
    if (fd_ >= 0) close(fd_);
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

absl::Status WriteAll(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, fmt::format("writing {}", path));
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

// `write` fills a temporary file, which then takes the place of `path`. Until it has its name its mode is 0600.
absl::Status ReplaceFile(const std::filesystem::path& path, mode_t mode,
                         const std::function<absl::Status(int fd, const std::string& temporary)>& write) {
  std::string temporary = path.string() + ".tmp.XXXXXX";
  {
    const Fd fd(mkostemp(temporary.data(), O_CLOEXEC));
    if (fd.get() < 0) return ErrnoStatus(errno, fmt::format("creating {}", temporary));
    absl::Status status = write(fd.get(), temporary);
    if (status.ok() && fchmod(fd.get(), mode) != 0) status = ErrnoStatus(errno, "fchmod " + temporary);
    if (status.ok() && fsync(fd.get()) != 0) status = ErrnoStatus(errno, "fsync " + temporary);
    if (!status.ok()) {
      unlink(temporary.c_str());
      return status;
    }
  }
  if (rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    unlink(temporary.c_str());
    return ErrnoStatus(error, fmt::format("renaming {} to {}", temporary, path.string()));
  }
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  const Fd dir(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (dir.get() < 0 || fsync(dir.get()) != 0) return ErrnoStatus(errno, "fsync " + folder.string());
  return absl::OkStatus();
}

const char* KindOf(mode_t mode) {
  if (S_ISFIFO(mode)) return "a named pipe (FIFO)";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISDIR(mode)) return "a folder";
  return "a device";
}

absl::Status NotRegular(const std::filesystem::path& path, mode_t mode) {
  return InvalidArgument("opening {}: it is {}, not a regular file", path.string(), KindOf(mode));
}

}  // namespace

absl::StatusOr<int> OpenRegularFile(const std::filesystem::path& path) {
  struct stat found {};
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) {
    const int error = errno;
    // A socket cannot be opened at all.
    if (error == ENXIO && stat(path.c_str(), &found) == 0 && !S_ISREG(found.st_mode)) {
      return NotRegular(path, found.st_mode);
    }
    return ErrnoStatus(error, fmt::format("opening {}", path.string()));
  }
  if (fstat(fd, &found) == 0 && S_ISREG(found.st_mode)) return fd;
  close(fd);
  return NotRegular(path, found.st_mode);
}

absl::Status CheckRegularFile(const std::filesystem::path& path) {
  const absl::StatusOr<int> fd = OpenRegularFile(path);
  if (fd.ok()) close(*fd);
  return fd.status();
}

absl::StatusOr<std::string> ReadFile(const std::filesystem::path& path, int64_t max_bytes) {
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return ErrnoStatus(errno, fmt::format("opening {}", path.string()));
  std::string bytes;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t n = read(fd.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, fmt::format("reading {}", path.string()));
    if (n == 0) return bytes;
    bytes.append(buffer, static_cast<size_t>(n));
    if (static_cast<int64_t>(bytes.size()) > max_bytes) {
      return ResourceExhausted("reading {}: larger than {} bytes", path.string(), max_bytes);
    }
  }
}

absl::Status WriteFileAtomic(const std::filesystem::path& path, std::string_view bytes) {
  return ReplaceFile(path, kPublicFile,
                     [&](int fd, const std::string& temporary) { return WriteAll(fd, bytes, temporary); });
}

absl::Status WriteSecretFile(const std::filesystem::path& path, std::string_view bytes) {
  return ReplaceFile(path, kSecretFile,
                     [&](int fd, const std::string& temporary) { return WriteAll(fd, bytes, temporary); });
}

absl::Status CopyFileAtomic(const std::filesystem::path& from, int64_t bytes, const std::filesystem::path& to) {
  const Fd source(open(from.c_str(), O_RDONLY | O_CLOEXEC));
  if (source.get() < 0) return ErrnoStatus(errno, fmt::format("opening {}", from.string()));
  return ReplaceFile(to, kPublicFile, [&](int fd, const std::string& temporary) -> absl::Status {
    std::string buffer(1 << 16, '\0');
    for (int64_t left = bytes; left > 0;) {
      const auto wanted = static_cast<size_t>(std::min(left, static_cast<int64_t>(buffer.size())));
      const ssize_t n = read(source.get(), buffer.data(), wanted);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return ErrnoStatus(errno, fmt::format("reading {}", from.string()));
      if (n == 0)
        return DataLoss("{} is {} bytes shorter than the {} that were to be copied", from.string(), left, bytes);
      MEDLEY_RETURN_IF_ERROR(WriteAll(fd, std::string_view(buffer).substr(0, static_cast<size_t>(n)), temporary));
      left -= n;
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<std::filesystem::path> MakeTempDir(std::string_view prefix) {
  std::error_code error;
  const std::filesystem::path root = std::filesystem::temp_directory_path(error);
  if (error) return Internal("finding the temporary folder: {}", error.message());
  std::string pattern = (root / (std::string(prefix) + ".XXXXXX")).string();
  if (mkdtemp(pattern.data()) == nullptr) return ErrnoStatus(errno, "creating " + pattern);
  return std::filesystem::path(pattern);
}

}  // namespace medley::base
