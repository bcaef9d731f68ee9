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
      slots_(1024) {}

size_t RowTable::Probe(uint64_t key) const {
  const size_t mask = slots_.size() - 1;
  size_t at = base::Mix64(key) & mask;
  while (slots_[at] != 0 && keys_[slots_[at] - 1] != key) at = (at + 1) & mask;
  return at;
}

uint32_t RowTable::FindOrCreate(uint64_t key) {
  size_t at = Probe(key);
  if (slots_[at] != 0) return slots_[at] - 1;
  if (4 * (keys_.size() + 1) > 3 * slots_.size()) {
    Grow();
    at = Probe(key);
  }
  const uint32_t row = size();
  keys_.push_back(key);
  changed_.push_back(0);
  values_.resize(values_.size() + stride(), optimizer_.initial_state);
  InitializeRow(spec_, seed_, static_cast<int64_t>(key), Row(row).first(columns_));
  slots_[at] = row + 1;
  return row;
}

void RowTable::Grow() {
  std::vector<uint32_t> old(slots_.size() * 2);
  old.swap(slots_);
  for (const uint32_t slot : old) {
    if (slot != 0) slots_[Probe(keys_[slot - 1])] = slot;
  }
}

}  // namespace medley::worker
