// Finds the number of a row by its key: open addressing in buckets of one cache line, so a look-up that finds its key
// reads one line of the index, however large it is.
//
// The buckets belong to segments, and a directory finds the segment of a hash (extendible hashing: Fagin, Nievergelt,
// Pippenger, Strong 1979). A full segment is divided in two, so no insertion touches more memory when the table is
// larger, except for a pointer per segment when the directory doubles. Where a division does not help, because keys
// were chosen for it, the segment doubles instead: memory is at most proportional to the rows.
// The index does not hold the keys: the caller passes a function from the number of a row to its key. The slot of a row
// that is removed stays marked, so that rows behind it are found, until its segment is full and is built again. Not
// thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "common/base/rng.h"

namespace medley::worker {

class RowIndex {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;  // the number of no row

  RowIndex();
  RowIndex(RowIndex&&) = default;

  static uint64_t Hash(uint64_t key) { return base::Mix64(key); }
  // Fetches what Guess will read.
  void Prefetch(uint64_t hash) const { __builtin_prefetch(Home(hash)); }
  // A row that may have the key with this hash, from its first bucket alone; kNone: there may be such a row elsewhere.
  uint32_t Guess(uint64_t hash) const {
    const Bucket& bucket = *Home(hash);
    const uint32_t found = bucket.Matches(Tag(hash));
    return found == 0 ? kNone : bucket.rows[static_cast<size_t>(__builtin_ctz(found))];
  }
  // The row with this key, or kNone.
  template <typename KeyOf>
  uint32_t Find(uint64_t key, uint64_t hash, KeyOf key_of) const {
    const uint64_t entry = Entry(hash);
    for (size_t at = hash & Mask(entry);; at = (at + 1) & Mask(entry)) {
      const Bucket& bucket = Buckets(entry)[at];
      for (uint32_t found = bucket.Matches(Tag(hash)); found != 0; found &= found - 1) {
        const uint32_t row = bucket.rows[static_cast<size_t>(__builtin_ctz(found))];
        if (key_of(row) == key) return row;
      }
      if (bucket.Matches(0) != 0) return kNone;  // no segment is full, so there is such a bucket
    }
  }
  // Removes a row that is in the index.
  void Remove(uint64_t hash, uint32_t row);
  // Adds a row whose key is not in the index.
  template <typename KeyOf>
  void Add(uint64_t hash, uint32_t row, KeyOf key_of) {
    while (IsFull(Entry(hash))) {
      rows_.clear();
      Collect(Entry(hash), rows_);
      hashes_.resize(rows_.size());
      constexpr size_t kAhead = 16;
      for (size_t i = 0; i < rows_.size() + kAhead; ++i) {
        if (i < rows_.size()) key_of.Prefetch(rows_[i]);
        if (i >= kAhead) hashes_[i - kAhead] = Hash(key_of(rows_[i - kAhead]));
      }
      Enlarge(hash);
    }
    Put(Entry(hash), hash, row);
  }

 private:
  static constexpr size_t kSlots = 12;
  static constexpr size_t kSegmentBuckets = 64;
  struct alignas(64) Bucket {
    std::array<uint8_t, kSlots> tags{};  // a part of the hash; 0: the slot is empty; kRemoved: its row was removed
    std::array<uint32_t, kSlots> rows{};
    // In a segment's first bucket: its slots that are not empty; in the second: the bits of the hash it stands for.
    uint32_t note = 0;

    // Bit i: slot i has this tag.
    uint32_t Matches(uint8_t tag) const {
#if defined(__SSE2__)
      const __m128i line = _mm_load_si128(reinterpret_cast<const __m128i*>(this));
      const auto equal = _mm_movemask_epi8(_mm_cmpeq_epi8(line, _mm_set1_epi8(static_cast<char>(tag))));
      return static_cast<uint32_t>(equal) & ((uint32_t{1} << kSlots) - 1);
#else
      uint32_t equal = 0;
      for (size_t i = 0; i < kSlots; ++i) equal |= static_cast<uint32_t>(tags[i] == tag) << i;
      return equal;
#endif
    }
  };
  static_assert(sizeof(Bucket) == 64);

  // The parts of a hash: the highest bits choose the segment, the lowest the bucket.
  static constexpr uint8_t kRemoved = 0xFF;
  static uint8_t Tag(uint64_t hash) {
    const auto tag = static_cast<uint8_t>(hash >> 24);
    return tag == 0 ? uint8_t{1} : tag == kRemoved ? uint8_t{kRemoved - 1} : tag;
  }
  uint64_t Entry(uint64_t hash) const { return directory_[(hash >> 1) >> (63 - depth_)]; }
  // An entry of the directory is the address of a segment's first bucket, with the binary logarithm of the number of
  // its buckets in the bits that are 0 in such an address.
  static constexpr uint64_t kSizeBits = alignof(Bucket) - 1;
  static Bucket* Buckets(uint64_t entry) { return reinterpret_cast<Bucket*>(entry & ~kSizeBits); }
  static size_t Mask(uint64_t entry) { return (size_t{1} << (entry & kSizeBits)) - 1; }
  const Bucket* Home(uint64_t hash) const {
    const uint64_t entry = Entry(hash);
    return Buckets(entry) + (hash & Mask(entry));
  }

  static bool IsFull(uint64_t entry);
  static void Put(uint64_t entry, uint64_t hash, uint32_t row);
  static void Collect(uint64_t entry, std::vector<uint32_t>& rows);
  // Divides or doubles the segment of `hash`, whose rows and their hashes are rows_ and hashes_. One with many slots of
  // removed rows keeps its size.
  void Enlarge(uint64_t hash);
  uint64_t MakeSegment(size_t buckets, uint32_t depth);

  struct Free {
    void operator()(Bucket* buckets) const { ::operator delete[](buckets, std::align_val_t{alignof(Bucket)}); }
  };
  uint32_t depth_ = 0;  // of the directory: it has 2^depth_ entries
  std::vector<uint64_t> directory_;
  std::vector<std::unique_ptr<Bucket[], Free>> segments_;
  std::vector<uint32_t> rows_;    // of the segment that is enlarged
  std::vector<uint64_t> hashes_;  // of rows_
};

}  // namespace medley::worker
