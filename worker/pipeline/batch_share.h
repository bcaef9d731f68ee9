// Which parts of every batch a device takes. A plain value.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "worker/data/batch.h"
#include "worker/data/block_order.h"

namespace medley::worker {

struct BatchShare {
  // For each seat of the device (Sequence::seats) the part of every micro-batch that it takes, from and to as fractions
  // (program::Layout::cuts). Some may be equal.
  std::vector<std::array<double, 2>> seats = {{0, 1}};
  uint64_t seed = 1;           // of the order of the data
  BlockOrder blocks;           // in which the data are shuffled
  unsigned parts = kAllParts;  // the lists of samples (RowParts) that the device reads
  int drawn = 0;               // ids of a sample behind those of the data: ParameterSpec::drawn of a table has them
};

}  // namespace medley::worker
