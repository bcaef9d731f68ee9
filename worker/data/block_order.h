// In which blocks the samples of a job are read and shuffled. It follows from the job and its data alone, so that it is
// the same for every plan, machine and trainer. Pure.
#pragma once

#include <cstdint>

#include "common/model/data_spec.h"

namespace medley::worker {

// How the order of a data epoch is made: blocks of adjacent samples in a random order, and the samples of each window
// of blocks in a random order. Without a block: one random order of all samples.
struct BlockOrder {
  int64_t block = 0;   // samples in a block; the last block of the data may have fewer
  int64_t window = 0;  // most blocks in a window
  bool operator==(const BlockOrder&) const = default;
};

inline constexpr int64_t kBlockBytes = int64_t{256} << 10;    // large enough for disks of any kind
inline constexpr int64_t kWindowBytes = int64_t{64} << 20;    // where the job says nothing
inline constexpr int64_t kMostShuffled = int64_t{512} << 20;  // more is shuffled in windows

// The number of samples in a block, >= 1, where each takes so many bytes (> 0).
int64_t BlockSamples(int64_t sample_bytes);

// `samples` > 0: of the training data. A window that would hold all samples is no window.
BlockOrder BlockOrderOf(const model::DataSpec& data, int64_t samples);

}  // namespace medley::worker
