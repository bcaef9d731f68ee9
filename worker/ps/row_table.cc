#include "worker/ps/row_table.h"

#include <algorithm>
#include <utility>

#include "common/base/rng.h"
#include "worker/params/initialize.h"

namespace medley::worker {

RowTable::RowTable(ParameterSpec spec, const Optimizer& optimizer, uint64_t seed)
    : spec_(std::move(spec)),
      optimizer_(optimizer),
      seed_(seed),
      columns_(static_cast<size_t>(spec_.columns)),
      buckets_(1024) {}

size_t RowTable::Probe(uint64_t key) const {
  const size_t mask = buckets_.size() - 1;
  size_t at = base::Mix64(key) & mask;
  while (buckets_[at] != 0 && keys_[buckets_[at] - 1] != key) at = (at + 1) & mask;
  return at;
}

uint32_t RowTable::FindOrCreate(uint64_t key) {
  size_t at = Probe(key);
  if (buckets_[at] != 0) return buckets_[at] - 1;
  if (4 * (keys_.size() + 1) > 3 * buckets_.size()) {
    Grow();
    at = Probe(key);
  }
  const uint32_t row = size();
  keys_.push_back(key);
  changed_.push_back(0);
  values_.resize(values_.size() + stride(), optimizer_.initial_state);
  InitializeRow(spec_, seed_, static_cast<int64_t>(key), Row(row).first(columns_));
  buckets_[at] = row + 1;
  return row;
}

void RowTable::Grow() {
  std::vector<uint32_t> old(buckets_.size() * 2);
  old.swap(buckets_);
  for (const uint32_t bucket : old) {
    if (bucket != 0) buckets_[Probe(keys_[bucket - 1])] = bucket;
  }
}

}  // namespace medley::worker
