#include "worker/ps/row_table.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "common/base/rng.h"
#include "worker/params/initialize.h"

namespace medley::worker {
namespace {

constexpr size_t kFirstBuckets = 1024;
constexpr size_t kBlockFloats = (size_t{64} << 10) / sizeof(float);

}  // namespace

RowTable::RowTable(ParameterSpec spec, const Optimizer& optimizer, uint64_t seed)
    : spec_(std::move(spec)),
      optimizer_(optimizer),
      seed_(seed),
      columns_(static_cast<size_t>(spec_.columns)),
      stride_(RowFloats(optimizer.kind, columns_)),
      rows_per_block_(std::max<size_t>(1, kBlockFloats / std::max<size_t>(1, stride_))) {
  for (size_t i = 0; i < kFirstBuckets; ++i) buckets_.push_back(0);
}

// With b buckets and 2^n <= b < 2^(n+1), the buckets below b - 2^n are split: their keys use one more bit of the hash.
size_t RowTable::Bucket(uint64_t key) const {
  const uint64_t hash = base::Mix64(key);
  const size_t half = std::bit_floor(buckets_.size());
  const size_t at = hash & (2 * half - 1);
  return at < buckets_.size() ? at : hash & (half - 1);
}

void RowTable::AddBucket() {
  const size_t added = buckets_.size();
  const size_t split = added - std::bit_floor(added);
  uint32_t row = buckets_[split];
  buckets_[split] = 0;
  buckets_.push_back(0);
  while (row != 0) {  // each row of the split bucket stays or moves to the new one
    Entry& entry = entries_[row - 1];
    uint32_t& head = buckets_[Bucket(entry.key)];
    const uint32_t next = std::exchange(entry.next, head);
    head = std::exchange(row, next);
  }
}

uint32_t RowTable::FindOrCreate(uint64_t key) {
  for (uint32_t row = buckets_[Bucket(key)]; row != 0; row = entries_[row - 1].next) {
    if (entries_[row - 1].key == key) return row - 1;
  }
  if (entries_.size() >= buckets_.size()) AddBucket();
  const uint32_t row = size();
  uint32_t& head = buckets_[Bucket(key)];
  entries_.push_back({.key = key, .next = head});
  head = row + 1;
  if (row / rows_per_block_ == blocks_.size()) {
    blocks_.push_back(std::make_unique_for_overwrite<float[]>(rows_per_block_ * stride()));
  }
  const std::span<float> values = Row(row);
  std::ranges::fill(values, optimizer_.initial_state);
  InitializeRow(spec_, seed_, static_cast<int64_t>(key), values.first(columns_));
  return row;
}

}  // namespace medley::worker
