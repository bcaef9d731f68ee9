// Which parts of every batch a device takes. A plain value.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace medley::worker {

struct BatchShare {
  // For each seat of the device (Sequence::seats) the part of every micro-batch that it takes, from and to as fractions
  // (program::Layout::cuts). Some may be equal.
  std::vector<std::array<double, 2>> seats = {{0, 1}};
  uint64_t seed = 1;  // of the data's permutation
};

}  // namespace medley::worker
