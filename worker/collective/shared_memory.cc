#include "worker/collective/shared_memory.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <limits>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "common/base/rng.h"
#include "common/base/status.h"

namespace medley::worker {
namespace {

constexpr char kMemoryName[] = "medley-group";
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

absl::Status SharingFailed(std::string_view what) {
  return base::Unavailable("sharing memory: {}: {}", what, std::strerror(errno));
}

// The lock of a rank is a byte of the file. The kernel releases it when the process ends, however it ends.
struct flock LockOf(int rank) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = rank;
  lock.l_len = 1;
  return lock;
}

// Runs functions on a thread of its own, one after the other.
class Opener {
 public:
  void Run(const std::function<void()>& function) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return function_ == nullptr; });
    function_ = &function;
    done_ = false;
    changed_.notify_all();
    changed_.wait(lock, [&] { return done_; });
    function_ = nullptr;
    changed_.notify_all();
  }

 private:
  void Loop(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [&] { return function_ != nullptr && !done_; })) {
      (*function_)();
      done_ = true;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  const std::function<void()>* function_ = nullptr;
  bool done_ = false;
  std::jthread thread_{[this](const std::stop_token& stop) { Loop(stop); }};  // last: it uses the others
};

std::unique_ptr<Opener>& TheOpener() {
  static std::unique_ptr<Opener> opener;
  return opener;
}

absl::StatusOr<int> OpenMemory(const std::string& path) {
  // In another PID namespace the number is that of any process; open nothing but a memory of ours.
  const std::string expected = fmt::format("/memfd:{} (deleted)", kMemoryName);
  char target[64];
  const ssize_t length = ::readlink(path.c_str(), target, sizeof target);
  if (length < 0) return SharingFailed("finding it");
  if (std::string_view(target, static_cast<size_t>(length)) != expected) {
    return base::Unavailable("sharing memory: {} is not it", path);
  }
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return SharingFailed("opening it");
  return descriptor;
}

}  // namespace

void StartMemoryOpener() {
  if (TheOpener() == nullptr) TheOpener() = std::make_unique<Opener>();
}

size_t SharedMemory::Size() const {
  const auto ranks = static_cast<size_t>(ranks_);
  return sizeof(Head) + ranks * sizeof(RankBoard) + 2 * ranks * slot_bytes_;
}

absl::Status SharedMemory::Map() {
  struct flock lock = LockOf(rank_);
  if (::fcntl(descriptor_, F_OFD_SETLK, &lock) != 0) return SharingFailed("locking the own rank");
  void* begin = ::mmap(nullptr, Size(), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (begin == MAP_FAILED) return SharingFailed("mapping it");
  begin_ = static_cast<std::byte*>(begin);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<SharedMemory>> SharedMemory::Create(int ranks, size_t slot_bytes) {
  const int descriptor = ::memfd_create(kMemoryName, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor < 0) return SharingFailed("creating it");
  std::unique_ptr<SharedMemory> memory(new SharedMemory(descriptor, 0, ranks, slot_bytes));
  const auto size = static_cast<off_t>(memory->Size());
  // Gets the memory now: a page that cannot be had later would end the process (SIGBUS).
  if (const int error = ::posix_fallocate(descriptor, 0, size); error != 0) {
    errno = error;
    return SharingFailed("allocating it");
  }
  if (::fchmod(descriptor, S_IRUSR | S_IWUSR) != 0 || ::fcntl(descriptor, F_ADD_SEALS, kSeals) != 0) {
    return SharingFailed("protecting it");
  }
  MEDLEY_RETURN_IF_ERROR(memory->Map());
  memory->key_ = {::getpid(), descriptor, {base::SystemSeed(), base::SystemSeed()}};
  std::memcpy(memory->head().token, memory->key_.token, sizeof memory->key_.token);
  return memory;
}

absl::StatusOr<std::unique_ptr<SharedMemory>> SharedMemory::Open(const SharedMemoryKey& key, int rank, int ranks,
                                                                 size_t slot_bytes) {
  const std::string path = fmt::format("/proc/{}/fd/{}", key.process, key.descriptor);
  absl::StatusOr<int> opened;
  const std::function<void()> open = [&] { opened = OpenMemory(path); };
  if (TheOpener() != nullptr) {
    TheOpener()->Run(open);
  } else {
    open();
  }
  MEDLEY_ASSIGN_OR_RETURN(const int descriptor, opened);
  std::unique_ptr<SharedMemory> memory(new SharedMemory(descriptor, rank, ranks, slot_bytes));
  struct stat found {};
  if (::fstat(descriptor, &found) != 0) return SharingFailed("its size");
  if (!S_ISREG(found.st_mode) || found.st_uid != ::geteuid() || found.st_size != static_cast<off_t>(memory->Size()) ||
      ::fcntl(descriptor, F_GET_SEALS) != kSeals) {
    return base::Unavailable("sharing memory: {} has another size or owner, or can change its size", path);
  }
  MEDLEY_RETURN_IF_ERROR(memory->Map());
  if (std::memcmp(memory->head().token, key.token, sizeof key.token) != 0) {
    return base::Unavailable("sharing memory: {} is that of another group", path);
  }
  memory->key_ = key;
  return memory;
}

SharedMemory::~SharedMemory() {
  if (begin_ != nullptr) ::munmap(begin_, Size());
  ::close(descriptor_);
}

std::span<float> SharedMemory::Slot(int rank, int half) const {
  const auto ranks = static_cast<size_t>(ranks_), index = static_cast<size_t>(2 * rank + half);
  std::byte* const slots = begin_ + sizeof(Head) + ranks * sizeof(RankBoard);
  return {reinterpret_cast<float*>(slots + index * slot_bytes_), slot_bytes_ / sizeof(float)};
}

bool SharedMemory::Alive(int rank) const {
  struct flock lock = LockOf(rank);
  return ::fcntl(descriptor_, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

uint32_t SharedMemory::Changes() const { return head().changes.load(); }

void SharedMemory::Wait(uint32_t changes, base::nanoseconds timeout) const {
  const auto seconds = std::chrono::duration_cast<base::seconds>(timeout);
  const timespec time{seconds.count(), (timeout - seconds).count()};
  ::syscall(SYS_futex, &head().changes, FUTEX_WAIT, changes, &time, nullptr, 0);
}

void SharedMemory::WakeAll() const {
  head().changes.fetch_add(1);
  ::syscall(SYS_futex, &head().changes, FUTEX_WAKE, std::numeric_limits<int>::max(), nullptr, nullptr, 0);
}

}  // namespace medley::worker
