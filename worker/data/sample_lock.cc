#include "worker/data/sample_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "common/base/status.h"

namespace medley::worker {
namespace {

constexpr base::milliseconds kPoll{20};

int64_t TouchedAt(const struct stat& status) {
  return int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
}

}  // namespace

absl::StatusOr<std::optional<SampleLock>> SampleLock::Take(const std::filesystem::path& path, base::Clock& clock,
                                                           const std::stop_token& stop,
                                                           const std::function<void()>& on_wait) {
  base::SteadyTime until = clock.Steady() + kSampleLockPatience;
  int64_t touched = 0;
  bool waited = false;
  while (true) {
    SampleLock lock({}, open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
    if (lock.fd_ < 0) return std::nullopt;
    struct stat status = {};
    while (flock(lock.fd_, LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno != EWOULDBLOCK || fstat(lock.fd_, &status) != 0) return std::nullopt;
      if (TouchedAt(status) != touched) {
        touched = TouchedAt(status);
        until = clock.Steady() + kSampleLockPatience;
      }
      if (clock.Steady() >= until) return std::nullopt;
      waited = true;
      if (on_wait) on_wait();
      clock.SleepFor(kPoll, stop);
      if (stop.stop_requested()) return base::Cancelled("waiting for {} was stopped", path.string());
    }
    if (fstat(lock.fd_, &status) != 0) return std::nullopt;
    if (waited && status.st_size > 0) return std::nullopt;  // MadeNothing
    if (status.st_nlink == 0) continue;                     // its holder has removed it: there may be another one
    static_cast<void>(ftruncate(lock.fd_, 0));              // a holder that was killed may have left its word
    lock.path_ = path;
    return lock;
  }
}

SampleLock::~SampleLock() {
  if (fd_ < 0) return;
  if (!path_.empty()) unlink(path_.c_str());
  close(fd_);
}

void SampleLock::Touch() const { futimens(fd_, nullptr); }

void SampleLock::MadeNothing() const { static_cast<void>(ftruncate(fd_, 1)); }

}  // namespace medley::worker
