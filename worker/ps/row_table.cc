#include "worker/ps/row_table.h"

#include <utility>

#include "common/base/status.h"
#include "worker/params/initialize.h"

namespace medley::worker {
namespace {

size_t RowBytes(size_t head, size_t floats) { return (head + floats * sizeof(float) + 7) / 8 * 8; }

}  // namespace

RowTable::RowTable(ParameterSpec spec, const Optimizer& optimizer, uint64_t seed)
    : spec_(std::move(spec)),
      optimizer_(optimizer),
      seed_(seed),
      columns_(static_cast<size_t>(spec_.columns)),
      stride_(RowFloats(optimizer.kind, columns_) + (optimizer.lifetime.Counts() ? kUseFloats : 0)),
      slabs_(RowBytes(sizeof(Head), stride_)) {}

uint32_t RowTable::Create(uint64_t key, FirstValues values) {
  MEDLEY_CHECK(size() < kMaxRows, "a shard has at most 2^32 - 1 rows of a table");
  const uint32_t row = size();
  slabs_.Append();
  Begin(row, key, values);
  return row;
}

uint32_t RowTable::CreateIn(uint64_t key, absl::FunctionRef<bool(uint32_t row)> is_free) {
  constexpr uint32_t kLooks = 4;
  for (uint32_t look = 0; look < std::min(kLooks, size()); ++look) {
    hand_ = hand_ + 1 < size() ? hand_ + 1 : 0;
    if (!is_free(hand_)) continue;
    Replace(hand_, key);
    return hand_;
  }
  return Create(key);
}

void RowTable::Replace(uint32_t row, uint64_t key, FirstValues values) {
  index_.Remove(RowIndex::Hash(Key(row)), row);
  Begin(row, key, values);
}

void RowTable::Begin(uint32_t row, uint64_t key, FirstValues values) {
  HeadOf(slabs_, row) = {.key = key, .changed = 0, .marks = {}};
  if (values == FirstValues::kInitial) Reset(row);
  index_.Add(RowIndex::Hash(key), row, KeyOf{slabs_});
}

void RowTable::Reset(uint32_t row) {
  const std::span<float> values = Row(row);
  Initial(Key(row), values.first(columns_));
  std::ranges::fill(values.subspan(columns_), optimizer_.initial_state);
  if (optimizer_.lifetime.Counts()) SetUse(row, {});
}

void RowTable::Initial(uint64_t key, std::span<float> weights) const {
  InitializeRow(spec_, seed_, static_cast<int64_t>(key), weights);
}

}  // namespace medley::worker
