#include "cli/run/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "common/base/file.h"
#include "common/base/status.h"

namespace medley::cli {
namespace {

constexpr char kLockFile[] = "lock";
constexpr int64_t kLongestPid = 32;

// "process 4711", as the holder wrote it.
std::string HolderOf(const std::filesystem::path& file) {
  const std::string pid = base::ReadFile(file, kLongestPid).value_or("");
  const size_t end = pid.find_first_not_of("0123456789");
  return end == 0 || pid.empty() ? "another process" : "process " + pid.substr(0, end);
}

}  // namespace

absl::StatusOr<RunLock> RunLock::Take(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / kLockFile;
  localcluster::UniqueFd fd(open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid()) return base::ErrnoStatus(errno, "opening " + file.string());
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return base::ErrnoStatus(errno, "locking " + file.string());
    return base::FailedPrecondition(
        "another medley run ({}) uses the folder {}; wait until it has ended, or name another folder with --folder",
        HolderOf(file), folder.string());
  }
  const std::string pid = std::to_string(getpid()) + "\n";
  if (ftruncate(fd.get(), 0) != 0 || write(fd.get(), pid.data(), pid.size()) != static_cast<ssize_t>(pid.size())) {
    return base::ErrnoStatus(errno, "writing " + file.string());
  }
  return RunLock(std::move(fd));
}

}  // namespace medley::cli
