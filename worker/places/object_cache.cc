#include "worker/places/object_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <thread>

#include "common/aws/sigv4.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "worker/places/cache_room.h"
#include "worker/places/file_lock.h"

namespace medley::worker {
namespace {

namespace fs = std::filesystem;
using object_store::Location;
using object_store::NameOf;

std::string IdOf(const FoundObject& object) {
  // The query of a web address may be a signature that changes, so it counts.
  std::string text = fmt::format("{}\n{}\n{}\n{}\n{}", NameOf(object.at), object.at.key, object.info.bytes,
                                 object.info.etag, object.info.modified);
  return aws::Sha256Hex(text).substr(0, 32);
}

bool HasLength(const fs::path& path, int64_t bytes) {
  struct stat found = {};
  return lstat(path.c_str(), &found) == 0 && S_ISREG(found.st_mode) && found.st_size == bytes;
}

absl::Status MakeFolders(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  return error ? base::ErrnoStatus(error.value(), "creating " + path.string()) : absl::OkStatus();
}

absl::Status WriteWholeAt(int fd, std::string_view bytes, int64_t offset) {
  while (!bytes.empty()) {
    const ssize_t n = pwrite(fd, bytes.data(), bytes.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return base::ErrnoStatus(errno, "writing into the cache");
    bytes.remove_prefix(static_cast<size_t>(n));
    offset += n;
  }
  return absl::OkStatus();
}

fs::path BelowView(const fs::path& view, const Location& at) {
  const std::string name = NameOf(at);  // "s3://bucket/key": a folder "s3:", one "bucket", and so on
  const size_t scheme = name.find("://");
  return view / (name.substr(0, scheme) + ":") / name.substr(scheme + 3);
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { close(fd_); }
  int get() const { return fd_; }

 private:
  const int fd_;
};

}  // namespace

HeldView::~HeldView() {
  if (lock_ >= 0) close(lock_);
}

fs::path HeldView::PathOf(const Location& at) const { return BelowView(folder_, at); }

absl::StatusOr<HeldView> ObjectCache::Fetch(const std::string& uri, const std::stop_token& stop,
                                            const OnBytes& on_bytes) {
  MEDLEY_RETURN_IF_ERROR(MakeFolders(options_.folder / "objects"));
  MEDLEY_RETURN_IF_ERROR(MakeFolders(options_.folder / "views"));
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<FoundObject> found, FindObjects(store_, uri, stop));
  std::string all;
  for (const FoundObject& object : found) all += IdOf(object) + "\n";
  const std::string id = aws::Sha256Hex(all).substr(0, 32);
  const fs::path view = options_.folder / "views" / id;
  const fs::path lock_path = view.string() + ".lock";
  MEDLEY_ASSIGN_OR_RETURN(FileLock lock, FileLock::Take(lock_path, LockKind::kShared, clock_, stop));
  utimensat(AT_FDCWD, lock_path.c_str(), nullptr, 0);  // it is used now
  HeldView held(view, lock.Release());
  std::error_code error;
  if (!fs::exists(view, error)) {
    const absl::Status built = Build(found, view, stop, on_bytes);
    if (!built.ok()) return built;
  }
  for (const FoundObject& object : found) {  // of a damaged cache
    MEDLEY_RETURN_IF_ERROR(Ensure(object, IdOf(object), stop, on_bytes));
  }
  return held;
}

absl::Status ObjectCache::Build(const std::vector<FoundObject>& found, const fs::path& view,
                                const std::stop_token& stop, const OnBytes& on_bytes) {
  std::string made = view.string() + ".XXXXXX";
  if (mkdtemp(made.data()) == nullptr) return base::ErrnoStatus(errno, "creating " + made);
  std::error_code error;
  absl::Status status;
  for (const FoundObject& object : found) {
    // The link comes first: it says that the object is in use, so that nobody removes it.
    const fs::path link = BelowView(made, object.at);
    status.Update(MakeFolders(link.parent_path()));
    if (!status.ok()) break;
    fs::create_symlink(options_.folder / "objects" / IdOf(object), link, error);
    if (error) status.Update(base::ErrnoStatus(error.value(), "creating " + link.string()));
    if (status.ok()) status.Update(Ensure(object, IdOf(object), stop, on_bytes));
    if (!status.ok()) break;
  }
  if (status.ok()) {
    fs::rename(made, view, error);
    if (error && !fs::exists(view)) status.Update(base::ErrnoStatus(error.value(), "creating " + view.string()));
    if (!error) return status;
  }
  fs::remove_all(made, error);  // another process has made the same
  return status;
}

absl::Status ObjectCache::Ensure(const FoundObject& object, const std::string& id, const std::stop_token& stop,
                                 const OnBytes& on_bytes) {
  const fs::path path = options_.folder / "objects" / id;
  if (HasLength(path, object.info.bytes)) return absl::OkStatus();
  const auto waits = [&] {
    if (on_bytes) on_bytes(0);
  };
  const fs::path lock_path = path.string() + ".lock";
  MEDLEY_ASSIGN_OR_RETURN(const FileLock lock, FileLock::Take(lock_path, LockKind::kAlone, clock_, stop, waits));
  std::error_code error;
  if (!HasLength(path, object.info.bytes)) {
    const fs::path part = path.string() + ".part";
    const absl::StatusOr<int> fd = Reserve(object, part, stop);
    MEDLEY_RETURN_IF_ERROR(base::Annotate(fd.status(), "copying " + NameOf(object.at)));
    absl::Status status = Copy(object, *fd, stop, on_bytes);
    if (status.ok() && fdatasync(*fd) != 0) status = base::ErrnoStatus(errno, "fdatasync " + part.string());
    close(*fd);
    if (status.ok()) fs::rename(part, path, error);
    if (error) status.Update(base::ErrnoStatus(error.value(), "renaming " + part.string()));
    if (!status.ok()) {
      fs::remove(part, error);
      return absl::IsResourceExhausted(status) ? base::Annotate(status, "copying " + NameOf(object.at)) : status;
    }
  }
  fs::remove(lock_path, error);  // while it is locked; who waits for it notices
  return absl::OkStatus();
}

// The file has its length before the lock of the room ends, so that the next process counts it.
absl::StatusOr<int> ObjectCache::Reserve(const FoundObject& object, const fs::path& part, const std::stop_token& stop) {
  MEDLEY_ASSIGN_OR_RETURN(const FileLock lock,
                          FileLock::Take(options_.folder / "room.lock", LockKind::kAlone, clock_, stop));
  std::error_code error;
  fs::remove(part, error);  // of a process that was killed
  const int64_t most = options_.most_bytes > 0 ? options_.most_bytes : StandardCacheBytes(options_.folder);
  MEDLEY_RETURN_IF_ERROR(MakeCacheRoom(options_.folder, most, object.info.bytes));
  const int fd = open(part.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return base::ErrnoStatus(errno, "creating " + part.string());
  if (ftruncate(fd, static_cast<off_t>(object.info.bytes)) == 0) return fd;
  const int why = errno;
  close(fd);
  return base::ErrnoStatus(why, "creating " + part.string());
}

absl::Status ObjectCache::Copy(const FoundObject& object, int fd, const std::stop_token& stop,
                               const OnBytes& on_bytes) {
  const int64_t piece = store_.limits().piece;
  const int64_t pieces = (object.info.bytes + piece - 1) / piece;
  std::atomic<int64_t> next = 0;
  base::Mutex mutex;
  absl::Status status;
  std::stop_source ended;
  const std::stop_callback forward(stop, [&] { ended.request_stop(); });
  const auto copy = [&] {
    for (int64_t at = next++; at < pieces && !ended.stop_requested(); at = next++) {
      const int64_t offset = at * piece;
      const int64_t bytes = std::min(piece, object.info.bytes - offset);
      const auto read = store_.Read(object.at, object.info, offset, bytes, ended.get_token());
      const absl::Status done = read.ok() ? WriteWholeAt(fd, *read, offset) : read.status();
      const base::MutexLock lock(mutex);
      if (done.ok() && on_bytes) on_bytes(bytes);
      if (!done.ok() && status.ok()) {
        status = done;
        ended.request_stop();
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int64_t i = 1; i < std::min<int64_t>(options_.threads, pieces); ++i) threads.emplace_back(copy);
    copy();
  }
  if (status.ok() && stop.stop_requested()) return base::Cancelled("copying {}: stopped", NameOf(object.at));
  return status;
}

}  // namespace medley::worker
