#include "worker/profiler/used_rows.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

namespace medley::worker {
namespace {

constexpr int kBits = 24;
constexpr uint64_t kPlaces = uint64_t{1} << kBits;

// Fibonacci hashing, after the bits were mixed: neighbouring ids spread over all places.
uint64_t PlaceOf(uint64_t id) {
  id ^= id >> 15;
  id *= 0x9E3779B97F4A7C15;
  return id >> (64 - kBits);
}

}  // namespace

int64_t CountUsedRows(const BatchView& data, const SampleShape& shape, const ParameterSpec& table) {
  if (table.drawn > 0) return table.rows;  // any row may be drawn
  const bool exact = table.rows <= static_cast<int64_t>(kPlaces);
  std::vector<uint64_t> used(kPlaces / 64, 0);
  const auto width = static_cast<size_t>(shape.fields);
  for (size_t sample = 0; sample < static_cast<size_t>(data.samples); ++sample) {
    const int32_t* ids = data.ids.data() + sample * width + table.first_field;
    for (int field = 0; field < table.fields; ++field) {
      const auto id = static_cast<uint64_t>(ids[field]);
      const uint64_t place = exact ? id % kPlaces : PlaceOf(id);
      used[place / 64] |= uint64_t{1} << (place % 64);
    }
  }
  int64_t set = 0;
  for (const uint64_t word : used) set += std::popcount(word);
  if (exact || set == 0) return set;
  const double places = static_cast<double>(kPlaces);
  const double free = std::max(1.0, places - static_cast<double>(set));
  const auto estimate = static_cast<int64_t>(std::llround(places * std::log(places / free)));
  return std::min(std::max<int64_t>(1, estimate), table.rows);
}

}  // namespace medley::worker
