#include "worker/cold/row_log.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "common/base/hash.h"
#include "common/base/mutex.h"
#include "common/base/rng.h"
#include "common/base/status.h"
#include "worker/cold/disk_errors.h"

namespace medley::worker {
namespace {

constexpr size_t kSegmentBytes = size_t{1} << 20;

uint64_t CheckOf(uint64_t key, const std::byte* bytes, size_t size) {
  return base::Hash64(std::string_view(reinterpret_cast<const char*>(bytes), size), base::Mix64(key));
}

}  // namespace

// Thread-safe.
class RowLog::File {
 public:
  File(std::filesystem::path path, int descriptor, size_t extent_bytes)
      : path_(std::move(path)), descriptor_(descriptor), extent_bytes_(extent_bytes), mapped_(descriptor) {}
  ~File() { close(descriptor_); }
  File(const File&) = delete;

  const std::filesystem::path& path() const { return path_; }
  int descriptor() const { return descriptor_; }
  MappedFile& mapped() { return mapped_; }
  int64_t HeldBytes() const {
    base::MutexLock lock(mutex_);
    return static_cast<int64_t>((next_ - free_.size()) * extent_bytes_);
  }
  uint32_t Take() {
    base::MutexLock lock(mutex_);
    if (free_.empty()) return next_++;
    const uint32_t number = free_.back();
    free_.pop_back();
    return number;
  }
  void Release(uint32_t number) {
    // Where the file system cannot do that, the room is used again later.
    fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
              static_cast<off_t>(number) * static_cast<off_t>(extent_bytes_), static_cast<off_t>(extent_bytes_));
    base::MutexLock lock(mutex_);
    free_.push_back(number);
  }

 private:
  const std::filesystem::path path_;
  const int descriptor_;
  const size_t extent_bytes_;
  MappedFile mapped_;
  mutable base::Mutex mutex_;
  uint32_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<uint32_t> free_ ABSL_GUARDED_BY(mutex_);
};

RowLog::Extent::Extent(std::shared_ptr<File> file, uint32_t number) : file_(std::move(file)), number_(number) {}
RowLog::Extent::~Extent() { file_->Release(number_); }

absl::StatusOr<std::unique_ptr<RowLog>> RowLog::Create(const std::filesystem::path& file, size_t row_bytes) {
  const int descriptor = open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0) return DiskError(errno, "creating a file for cold rows", file);
  posix_fadvise(descriptor, 0, 0, POSIX_FADV_RANDOM);  // a miss wants one row
  const size_t record = kHeadBytes + row_bytes;
  const auto shift = static_cast<uint32_t>(std::bit_width(std::max<size_t>(1, kSegmentBytes / record)) - 1);
  auto opened = std::make_shared<File>(file, descriptor, record << shift);
  return std::unique_ptr<RowLog>(new RowLog(std::move(opened), record, shift));
}

void RowLog::Compose(uint64_t key, std::span<const std::byte> bytes, std::byte* record) const {
  const uint64_t check = CheckOf(key, bytes.data(), bytes.size());
  std::memcpy(record, &key, sizeof key);
  std::memcpy(record + sizeof key, &check, sizeof check);
  std::memcpy(record + kHeadBytes, bytes.data(), bytes.size());
}

uint64_t RowLog::KeyOf(const std::byte* record) {
  uint64_t key = 0;
  std::memcpy(&key, record, sizeof key);
  return key;
}

bool RowLog::IsWhole(const std::byte* record) const {
  uint64_t check = 0;
  std::memcpy(&check, record + sizeof(uint64_t), sizeof check);
  return check == CheckOf(KeyOf(record), record + kHeadBytes, row_bytes());
}

absl::StatusOr<std::vector<RowLog::Piece>> RowLog::Reserve(uint32_t count) {
  std::vector<Piece> pieces;
  while (count > 0) {
    if (head_ && segments_[*head_].used == slots()) Seal();
    if (!head_) {
      auto extent = std::make_shared<const Extent>(file_, file_->Take());
      const uint32_t number = extent->number();
      if (number >= UINT32_MAX >> shift_) {
        GiveBack(pieces);
        return base::ResourceExhausted("writing cold rows in {}: it has as many as a file can have",
                                       file_->path().string());
      }
      if (number >= segments_.size()) segments_.resize(size_t{number} + 1);
      segments_[number] = {.extent = std::move(extent), .bits = std::vector<uint64_t>((slots() + 63) / 64)};
      head_ = number;
    }
    Segment& head = segments_[*head_];
    const uint32_t some = std::min(count, slots() - head.used);
    pieces.push_back({head.extent, PlaceOf(*head_, head.used), some});
    head.used += some;
    count -= some;
  }
  return pieces;
}

void RowLog::GiveBack(std::span<const Piece> pieces) {
  for (size_t p = pieces.size(); p-- > 0;) {
    const uint32_t number = pieces[p].first >> shift_;
    Segment& segment = segments_[number];
    if (head_ != number) {  // the one after it was new
      if (head_) segments_[*head_] = {};
      sealed_used_ -= segment.used;
      sealed_live_ -= segment.live;
      head_ = number;
    }
    segment.used -= pieces[p].count;
  }
}

void RowLog::Seal() {
  sealed_used_ += segments_[*head_].used;
  sealed_live_ += segments_[*head_].live;
  head_.reset();
}

void RowLog::Drop(uint32_t number) {
  sealed_used_ -= segments_[number].used;
  segments_[number] = {};
}

absl::Status RowLog::Write(const Piece& piece, std::span<const std::byte> records) const {
  auto at = static_cast<off_t>(piece.first) * static_cast<off_t>(record_bytes_);
  while (!records.empty()) {
    const ssize_t written = pwrite(file_->descriptor(), records.data(), records.size(), at);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return DiskError(errno, "writing cold rows", file_->path());
    file_->mapped().MarkKnown(static_cast<uint64_t>(at), static_cast<size_t>(written));
    records = records.subspan(static_cast<size_t>(written));
    at += written;
  }
  return absl::OkStatus();
}

absl::Status RowLog::Read(uint32_t place, std::span<std::byte> records) const {
  auto at = static_cast<off_t>(place) * static_cast<off_t>(record_bytes_);
  while (!records.empty()) {
    const ssize_t read = pread(file_->descriptor(), records.data(), records.size(), at);
    if (read < 0 && errno == EINTR) continue;
    if (read < 0) return DiskError(errno, "reading cold rows", file_->path());
    if (read == 0) {
      return base::DataLoss("reading cold rows in {}: the disk has damaged them: the file is too short",
                            file_->path().string());
    }
    file_->mapped().MarkKnown(static_cast<uint64_t>(at), static_cast<size_t>(read));
    records = records.subspan(static_cast<size_t>(read));
    at += read;
  }
  return absl::OkStatus();
}

const std::byte* RowLog::InMemory(uint32_t place) const {
  return file_->mapped().Known(uint64_t{place} * record_bytes_, record_bytes_);
}

MappedFile::Check RowLog::CheckMemory() const { return MappedFile::Check(file_->mapped()); }

bool RowLog::ReadNow(uint32_t place, std::span<std::byte> records) const {
  const auto at = static_cast<off_t>(place) * static_cast<off_t>(record_bytes_);
  const iovec to = {records.data(), records.size()};
  if (preadv2(file_->descriptor(), &to, 1, at, RWF_NOWAIT) == static_cast<ssize_t>(records.size())) {
    file_->mapped().MarkKnown(static_cast<uint64_t>(at), records.size());
    return true;
  }
  posix_fadvise(file_->descriptor(), at, static_cast<off_t>(records.size()), POSIX_FADV_WILLNEED);
  return false;
}

void RowLog::SetLive(uint32_t place) {
  Segment& segment = segments_[place >> shift_];
  const uint32_t slot = place & (slots() - 1);
  segment.bits[slot / 64] |= uint64_t{1} << (slot % 64);
  ++segment.live;
  ++live_;
  if (head_ != place >> shift_) ++sealed_live_;
}

void RowLog::SetDead(uint32_t place) {
  const uint32_t number = place >> shift_;
  Segment& segment = segments_[number];
  const uint32_t slot = place & (slots() - 1);
  segment.bits[slot / 64] &= ~(uint64_t{1} << (slot % 64));
  --segment.live;
  --live_;
  if (head_ == number) return;
  --sealed_live_;
  if (segment.live == 0) Drop(number);
}

std::optional<uint32_t> RowLog::Emptiest() const {
  std::optional<uint32_t> emptiest;
  for (uint32_t number = 0; number < segments_.size(); ++number) {
    const Segment& segment = segments_[number];
    if (segment.extent == nullptr || head_ == number || segment.live == segment.used) continue;
    if (!emptiest || segment.live < segments_[*emptiest].live) emptiest = number;
  }
  return emptiest;
}

int64_t RowLog::bytes() const {
  const uint32_t unused = head_ ? slots() - segments_[*head_].used : 0;
  return file_->HeldBytes() - static_cast<int64_t>(size_t{unused} * record_bytes_);
}

}  // namespace medley::worker
