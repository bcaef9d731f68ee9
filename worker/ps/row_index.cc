#include "worker/ps/row_index.h"

#include <algorithm>

#include "common/base/status.h"

namespace medley::worker {

RowIndex::RowIndex() { directory_.push_back(MakeSegment(kSegmentBuckets, 0)); }

uint64_t RowIndex::MakeSegment(size_t buckets, uint32_t depth) {
  static_assert(kSegmentBuckets >= 2);
  auto* first = static_cast<Bucket*>(::operator new[](buckets * sizeof(Bucket), std::align_val_t{alignof(Bucket)}));
  std::uninitialized_value_construct_n(first, buckets);
  segments_.emplace_back(first);
  first[1].note = depth;
  return reinterpret_cast<uint64_t>(first) | static_cast<uint64_t>(__builtin_ctzll(buckets));
}

bool RowIndex::IsFull(uint64_t entry) {
  const size_t slots = (Mask(entry) + 1) * kSlots;
  return Buckets(entry)[0].note >= slots - slots / 11;
}

void RowIndex::Put(uint64_t entry, uint64_t hash, uint32_t row) {
  for (size_t at = hash & Mask(entry);; at = (at + 1) & Mask(entry)) {
    Bucket& bucket = Buckets(entry)[at];
    const uint32_t empty = bucket.Matches(0);
    if (empty == 0) continue;
    const auto slot = static_cast<size_t>(__builtin_ctz(empty));
    bucket.tags[slot] = Tag(hash);
    bucket.rows[slot] = row;
    ++Buckets(entry)[0].note;
    return;
  }
}

void RowIndex::Collect(uint64_t entry, std::vector<uint32_t>& rows) {
  for (size_t at = 0; at <= Mask(entry); ++at) {
    const Bucket& bucket = Buckets(entry)[at];
    for (size_t slot = 0; slot < kSlots; ++slot) {
      if (bucket.tags[slot] != 0 && bucket.tags[slot] != kRemoved) rows.push_back(bucket.rows[slot]);
    }
  }
}

void RowIndex::Remove(uint64_t hash, uint32_t row) {
  const uint64_t entry = Entry(hash);
  for (size_t at = hash & Mask(entry);; at = (at + 1) & Mask(entry)) {
    Bucket& bucket = Buckets(entry)[at];
    for (uint32_t found = bucket.Matches(Tag(hash)); found != 0; found &= found - 1) {
      const auto slot = static_cast<size_t>(__builtin_ctz(found));
      if (bucket.rows[slot] != row) continue;
      bucket.tags[slot] = kRemoved;
      return;
    }
    MEDLEY_CHECK(bucket.Matches(0) == 0, "a row that is removed must be in the index");
  }
}

void RowIndex::Enlarge(uint64_t hash) {
  const uint64_t old = Entry(hash);
  const uint32_t depth = Buckets(old)[1].note;
  const size_t buckets = Mask(old) + 1;
  if (2 * rows_.size() < buckets * kSlots) {
    std::fill_n(Buckets(old), buckets, Bucket{});
    Buckets(old)[1].note = depth;
    for (size_t i = 0; i < rows_.size(); ++i) Put(old, hashes_[i], rows_[i]);
    return;
  }
  // Hashes that are spread evenly need a directory of at most twice as many entries as there are segments.
  const bool divides = depth < depth_ || directory_.size() <= 8 * segments_.size();
  if (divides && depth == depth_) {
    std::vector<uint64_t> larger(2 * directory_.size());
    for (size_t i = 0; i < larger.size(); ++i) larger[i] = directory_[i / 2];
    directory_ = std::move(larger);
    ++depth_;
  }
  const size_t first = static_cast<size_t>((hash >> 1) >> (63 - depth_)) >> (depth_ - depth) << (depth_ - depth);
  const size_t count = size_t{1} << (depth_ - depth);  // entries of the old segment
  if (divides) {
    const uint64_t added = MakeSegment(buckets, depth + 1);
    std::fill_n(directory_.begin() + static_cast<std::ptrdiff_t>(first + count / 2), count / 2, added);
    std::fill_n(Buckets(old), buckets, Bucket{});
    Buckets(old)[1].note = depth + 1;
  } else {
    std::fill_n(directory_.begin() + static_cast<std::ptrdiff_t>(first), count, MakeSegment(2 * buckets, depth));
    std::erase_if(segments_, [&](const auto& segment) { return segment.get() == Buckets(old); });
  }
  for (size_t i = 0; i < rows_.size(); ++i) Put(Entry(hashes_[i]), hashes_[i], rows_[i]);
}

}  // namespace medley::worker
