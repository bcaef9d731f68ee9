#include "worker/data/permutation.h"

#include <algorithm>
#include <bit>

#include "common/base/rng.h"
#include "common/base/status.h"

namespace medley::worker {

Permutation::Permutation(int64_t rows, uint64_t seed, int64_t data_epoch) : rows_(static_cast<uint64_t>(rows)) {
  MEDLEY_CHECK(rows > 0, "a permutation needs at least one row");
  half_bits_ = std::max(1, (static_cast<int>(std::bit_width(rows_ - 1)) + 1) / 2);
  uint64_t key = base::Mix64(base::Mix64(seed) + static_cast<uint64_t>(data_epoch));
  for (uint64_t& round : keys_) round = key = base::Mix64(key);
}

uint64_t Permutation::Encrypt(uint64_t value) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t left = value >> half_bits_;
  uint64_t right = value & mask;
  for (const uint64_t key : keys_) {
    const uint64_t mixed = left ^ (base::Mix64(right ^ key) & mask);
    left = right;
    right = mixed;
  }
  return left << half_bits_ | right;
}

uint64_t Permutation::Decrypt(uint64_t value) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t left = value >> half_bits_;
  uint64_t right = value & mask;
  for (auto key = keys_.rbegin(); key != keys_.rend(); ++key) {
    const uint64_t mixed = right ^ (base::Mix64(left ^ *key) & mask);
    right = left;
    left = mixed;
  }
  return left << half_bits_ | right;
}

int64_t Permutation::operator()(int64_t position) const {
  uint64_t value = static_cast<uint64_t>(position);
  do {
    value = Encrypt(value);
  } while (value >= rows_);
  return static_cast<int64_t>(value);
}

int64_t Permutation::PositionOf(int64_t row) const {
  uint64_t value = static_cast<uint64_t>(row);
  do {
    value = Decrypt(value);
  } while (value >= rows_);
  return static_cast<int64_t>(value);
}

}  // namespace medley::worker
