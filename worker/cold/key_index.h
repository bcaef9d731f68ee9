// Finds the places of cold rows by the hashes of their keys, in a file that is mapped into memory: 8 bytes an entry, 11
// to 22 with what is free. So the kernel keeps in memory what is used of it, and no table is too large.
//
// Extendible hashing (Fagin, Nievergelt, Pippenger, Strong 1979) in pages of 4 KiB: a full page is divided in two. An
// entry has only 32 bits of a hash, so the caller compares the key of the row at each place that it gets. Buckets have
// checksums of their content and place, which each look-up checks: a row that the index does not have is a new one, so
// a damaged index would train other rows. Not thread-safe.
#pragma once

#include <absl/container/inlined_vector.h>
#include <absl/status/statusor.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/rng.h"

namespace medley::worker {

class KeyIndex {
 public:
  using Places = absl::InlinedVector<uint32_t, 2>;

  static uint32_t Hash(uint64_t key) { return static_cast<uint32_t>(base::Mix64(key) >> 32); }

  // Creates the file. Errors: ResourceExhausted (no room), Unavailable.
  static absl::StatusOr<std::unique_ptr<KeyIndex>> Create(std::filesystem::path file);
  ~KeyIndex();

  // Fetches what Find will read.
  void Prefetch(uint32_t hash) const { __builtin_prefetch(&HomeOf(hash)); }
  // Adds the places of all entries with this hash to `places`. Errors: DataLoss.
  absl::Status Find(uint32_t hash, Places& places) const;
  // Adds an entry beside those with the same hash. Errors: ResourceExhausted (no room), DataLoss, Unavailable.
  absl::Status Add(uint32_t hash, uint32_t place);
  // If exactly one entry has this hash, gives it another place and returns its earlier one. Errors: DataLoss.
  absl::StatusOr<std::optional<uint32_t>> MoveOnly(uint32_t hash, uint32_t to);
  // Gives an entry another place. Errors: DataLoss, also if there is no such entry.
  absl::Status Move(uint32_t hash, uint32_t from, uint32_t to);
  // Those of the file that are used.
  int64_t bytes() const { return static_cast<int64_t>(pages_.size() * kPageBytes); }

 private:
  static constexpr size_t kPageBytes = 4096;
  static constexpr size_t kEntries = 7;   // of a bucket
  static constexpr size_t kBuckets = 64;  // of a page
  static constexpr uint32_t kHomeBits = 6;
  static constexpr uint32_t kMostDepth = 32 - kHomeBits;
  static constexpr size_t kFull = kEntries * kBuckets * 7 / 8;  // entries of a page that is divided
  struct Entry {
    uint32_t hash;
    uint32_t place;
  };
  struct alignas(64) Bucket {
    uint32_t check;
    uint32_t count;
    std::array<Entry, kEntries> entries;
  };
  static_assert(sizeof(Bucket) == 64 && kBuckets * sizeof(Bucket) == kPageBytes && kBuckets == 1U << kHomeBits);
  struct Page {
    Bucket* buckets = nullptr;
    uint32_t entries = 0;
    uint32_t depth = 0;  // bits of the hashes that all its entries share
  };

  KeyIndex(std::filesystem::path file, int descriptor) : file_(std::move(file)), descriptor_(descriptor) {}
  uint32_t PageOf(uint32_t hash) const { return directory_[hash & ((size_t{1} << depth_) - 1)]; }
  Bucket& HomeOf(uint32_t hash) const { return pages_[PageOf(hash)].buckets[hash >> (32 - kHomeBits)]; }
  // Calls visit(bucket) for the buckets of a page where entries with this hash are, until it returns true or, behind
  // the last of them, false.
  template <typename Visit>
  absl::Status Look(uint32_t page, uint32_t hash, Visit visit) const;
  static uint32_t CheckOf(const Bucket& bucket, uint32_t page);
  absl::Status Damaged() const;
  void Empty(uint32_t page);
  absl::Status Put(uint32_t page, const Entry& entry);
  absl::Status AddPage();
  absl::Status Divide(uint32_t hash);

  const std::filesystem::path file_;
  const int descriptor_;
  std::vector<std::pair<std::byte*, size_t>> mapped_;
  size_t file_bytes_ = 0;
  std::vector<Page> pages_;
  uint32_t depth_ = 0;
  std::vector<uint32_t> directory_;  // the page of each value of the lowest depth_ bits of a hash
};

}  // namespace medley::worker
