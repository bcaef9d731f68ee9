#include "worker/cold/key_index.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "common/base/status.h"
#include "worker/cold/disk_errors.h"

namespace medley::worker {
namespace {

constexpr size_t kLeastGrowth = size_t{64} << 10;  // of the file
constexpr size_t kMostGrowth = size_t{4} << 20;
constexpr size_t kSpread = 16;  // most entries of the directory for each page, on average

}  // namespace

absl::StatusOr<std::unique_ptr<KeyIndex>> KeyIndex::Create(std::filesystem::path file) {
  const int descriptor = open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0) return DiskError(errno, "creating the index of cold rows", file);
  std::unique_ptr<KeyIndex> index(new KeyIndex(std::move(file), descriptor));
  MEDLEY_RETURN_IF_ERROR(index->AddPage());
  index->directory_.push_back(0);
  return index;
}

KeyIndex::~KeyIndex() {
  for (const auto& [memory, bytes] : mapped_) munmap(memory, bytes);
  close(descriptor_);
}

// The number of the page counts too: a disk may return another page, or zeros. A product with an odd number differs for
// each value, so each changed entry changes the sum; the factors differ, so entries cannot change places.
uint32_t KeyIndex::CheckOf(const Bucket& bucket, uint32_t page) {
  uint64_t mixed = ((uint64_t{page} + 1) << 8 ^ bucket.count) * 0x9e3779b97f4a7c15ULL;
  for (size_t i = 0; i < kEntries; ++i) {
    const Entry& entry = bucket.entries[i];
    mixed += (uint64_t{entry.hash} << 32 | entry.place) * (0xbf58476d1ce4e5b9ULL + 2 * i * 0x94d049bb133111ebULL);
  }
  mixed *= 0xd6e8feb86659fd93ULL;
  return static_cast<uint32_t>(mixed >> 32) ^ static_cast<uint32_t>(mixed);
}

absl::Status KeyIndex::Damaged() const {
  return base::DataLoss("reading the index of cold rows {}: the disk has damaged it", file_.string());
}

template <typename Visit>
absl::Status KeyIndex::Look(uint32_t page, uint32_t hash, Visit visit) const {
  size_t at = hash >> (32 - kHomeBits);
  for (size_t looked = 0; looked < kBuckets; ++looked, at = (at + 1) % kBuckets) {
    Bucket& bucket = pages_[page].buckets[at];
    if (bucket.check != CheckOf(bucket, page)) return Damaged();
    if (visit(bucket) || bucket.count < kEntries) return absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::Status KeyIndex::Find(uint32_t hash, Places& places) const {
  return Look(PageOf(hash), hash, [&](const Bucket& bucket) {
    for (size_t i = 0; i < bucket.count; ++i) {
      if (bucket.entries[i].hash == hash) places.push_back(bucket.entries[i].place);
    }
    return false;
  });
}

absl::Status KeyIndex::Move(uint32_t hash, uint32_t from, uint32_t to) {
  const uint32_t page = PageOf(hash);
  bool moved = false;
  MEDLEY_RETURN_IF_ERROR(Look(page, hash, [&](Bucket& bucket) {
    for (size_t i = 0; i < bucket.count && !moved; ++i) {
      Entry& entry = bucket.entries[i];
      if (entry.hash != hash || entry.place != from) continue;
      entry.place = to;
      bucket.check = CheckOf(bucket, page);
      moved = true;
    }
    return moved;
  }));
  return moved ? absl::OkStatus() : Damaged();
}

absl::StatusOr<std::optional<uint32_t>> KeyIndex::MoveOnly(uint32_t hash, uint32_t to) {
  const uint32_t page = PageOf(hash);
  Bucket* in = nullptr;
  size_t at = 0, found = 0;
  MEDLEY_RETURN_IF_ERROR(Look(page, hash, [&](Bucket& bucket) {
    for (size_t i = 0; i < bucket.count; ++i) {
      if (bucket.entries[i].hash != hash) continue;
      in = &bucket;
      at = i;
      ++found;
    }
    return found > 1;
  }));
  if (found != 1) return std::nullopt;
  const uint32_t from = in->entries[at].place;
  in->entries[at].place = to;
  in->check = CheckOf(*in, page);
  return from;
}

absl::Status KeyIndex::Put(uint32_t page, const Entry& entry) {
  bool put = false;
  MEDLEY_RETURN_IF_ERROR(Look(page, entry.hash, [&](Bucket& bucket) {
    if (bucket.count == kEntries) return false;
    bucket.entries[bucket.count++] = entry;
    bucket.check = CheckOf(bucket, page);
    return put = true;
  }));
  if (!put) return Damaged();  // no page is full
  ++pages_[page].entries;
  return absl::OkStatus();
}

absl::Status KeyIndex::Add(uint32_t hash, uint32_t place) {
  while (pages_[PageOf(hash)].entries >= kFull) MEDLEY_RETURN_IF_ERROR(Divide(hash));
  return Put(PageOf(hash), {hash, place});
}

void KeyIndex::Empty(uint32_t page) {
  Page& p = pages_[page];
  p.entries = 0;
  for (size_t b = 0; b < kBuckets; ++b) {
    p.buckets[b] = {};
    p.buckets[b].check = CheckOf(p.buckets[b], page);
  }
}

// The file has its blocks before it is used, because a process that writes to a mapped page without one is killed.
absl::Status KeyIndex::AddPage() {
  const size_t used = pages_.size() * kPageBytes;
  if (used == file_bytes_) {
    const size_t more = std::clamp(file_bytes_ / kLeastGrowth * kLeastGrowth, kLeastGrowth, kMostGrowth);
    if (const int error = posix_fallocate(descriptor_, static_cast<off_t>(used), static_cast<off_t>(more));
        error != 0) {
      return DiskError(error, "enlarging the index of cold rows", file_);
    }
    void* memory =
        mmap(nullptr, more, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, static_cast<off_t>(file_bytes_));
    if (memory == MAP_FAILED) return DiskError(errno, "mapping the index of cold rows", file_);
    madvise(memory, more, MADV_RANDOM);
    mapped_.emplace_back(static_cast<std::byte*>(memory), more);
    file_bytes_ += more;
  }
  const auto& [memory, bytes] = mapped_.back();
  pages_.push_back({.buckets = reinterpret_cast<Bucket*>(memory + (used - (file_bytes_ - bytes)))});
  Empty(static_cast<uint32_t>(pages_.size() - 1));
  return absl::OkStatus();
}

absl::Status KeyIndex::Divide(uint32_t hash) {
  const uint32_t page = PageOf(hash);
  const uint32_t bit = pages_[page].depth;
  if (bit == depth_) {
    // Hashes that are spread evenly need about as many entries as there are pages.
    if (depth_ == kMostDepth || directory_.size() >= kSpread * std::max<size_t>(pages_.size(), kBuckets)) {
      return base::ResourceExhausted("adding to the index of cold rows {}: too many keys have equal hashes",
                                     file_.string());
    }
  }
  std::array<Bucket, kBuckets> old;
  std::memcpy(static_cast<void*>(old.data()), pages_[page].buckets, kPageBytes);
  for (const Bucket& bucket : old) {
    if (bucket.check != CheckOf(bucket, page)) return Damaged();
  }
  MEDLEY_RETURN_IF_ERROR(AddPage());
  if (bit == depth_) {
    directory_.reserve(2 * directory_.size());
    directory_.insert(directory_.end(), directory_.begin(), directory_.end());
    ++depth_;
  }
  const auto added = static_cast<uint32_t>(pages_.size() - 1);
  const size_t step = size_t{1} << (bit + 1);
  for (size_t i = (hash & (step / 2 - 1)) + step / 2; i < directory_.size(); i += step) directory_[i] = added;
  pages_[page].depth = pages_[added].depth = bit + 1;
  Empty(page);
  for (const Bucket& bucket : old) {
    for (size_t i = 0; i < bucket.count; ++i) {
      MEDLEY_RETURN_IF_ERROR(Put((bucket.entries[i].hash >> bit & 1) != 0 ? added : page, bucket.entries[i]));
    }
  }
  return absl::OkStatus();
}

}  // namespace medley::worker
