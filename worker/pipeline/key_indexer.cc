#include "worker/pipeline/key_indexer.h"

#include <algorithm>
#include <array>
#include <bit>

namespace medley::worker {

void KeyIndexer::Index(std::span<int32_t> ids, std::vector<uint64_t>& keys) {
  const size_t size = std::bit_ceil(std::max<size_t>(16, ids.size() * 2));
  entries_.assign(size, 0);
  distinct_.clear();
  const int shift = 64 - std::countr_zero(size);
  for (int32_t& id : ids) {
    const uint64_t wanted = static_cast<uint64_t>(id) + 1;
    size_t at = (static_cast<uint64_t>(id) * 0x9e3779b97f4a7c15ULL) >> shift;
    while (entries_[at] != 0 && entries_[at] >> 32 != wanted) at = (at + 1) & (size - 1);
    if (entries_[at] == 0) {
      entries_[at] = wanted << 32 | distinct_.size();
      distinct_.push_back(static_cast<uint64_t>(id) << 32 | distinct_.size());
    }
    id = static_cast<int32_t>(entries_[at] & 0xffffffffU);
  }
  Sort();
  rank_.resize(distinct_.size());
  keys.resize(distinct_.size());
  for (size_t i = 0; i < distinct_.size(); ++i) {
    keys[i] = distinct_[i] >> 32;
    rank_[distinct_[i] & 0xffffffffU] = static_cast<int32_t>(i);
  }
  for (int32_t& id : ids) id = rank_[static_cast<size_t>(id)];
}

// Radix sort by id, least significant digit first, 11 bits per pass, up to the highest bit of the largest id.
void KeyIndexer::Sort() {
  constexpr int kDigitBits = 11;
  uint64_t all = 0;
  for (const uint64_t x : distinct_) all |= x >> 32;
  scratch_.resize(distinct_.size());
  for (int digit = 0; digit < static_cast<int>(std::bit_width(all)); digit += kDigitBits) {
    std::array<uint32_t, 1 << kDigitBits> starts{};
    const auto digit_of = [&](uint64_t x) { return (x >> (32 + digit)) & ((1U << kDigitBits) - 1); };
    for (const uint64_t x : distinct_) ++starts[digit_of(x)];
    uint32_t sum = 0;
    for (uint32_t& start : starts) {
      const uint32_t count = start;
      start = sum;
      sum += count;
    }
    for (const uint64_t x : distinct_) scratch_[starts[digit_of(x)]++] = x;
    distinct_.swap(scratch_);
  }
}

}  // namespace medley::worker
