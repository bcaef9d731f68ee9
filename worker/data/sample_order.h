// The order of samples in a data epoch, with random access and without storage: position -> sample, each sample once.
//
// Small data have one random permutation. Of larger data, blocks of adjacent samples are permuted, and the samples of
// each window of blocks are shuffled, so that a reader needs the blocks of one window at a time:
//
//   blocks of the data    0 1 2 3 4 5 6        in a random order   5 2 | 0 6 | 3 1 4
//   windows               samples of blocks 5 and 2 in a random order, then those of 0 and 6, ...
//
// Windows differ by at most one block, so that no window has too few to be shuffled well. Everything is keyed by (seed,
// data epoch): a position means the same sample for every trainer and plan. Immutable, thread-safe.
#pragma once

#include <cstdint>

#include "worker/data/block_order.h"
#include "worker/data/permutation.h"

namespace medley::worker {

class SampleOrder {
 public:
  // rows > 0.
  SampleOrder(int64_t rows, uint64_t seed, const BlockOrder& blocks, int64_t data_epoch);

  // The sample at `position`, 0 <= position < rows. A bijection of [0, rows).
  int64_t operator()(int64_t position) const;

  int64_t rows() const { return rows_; }
  int64_t data_epoch() const { return data_epoch_; }
  SampleOrder Next() const { return {rows_, seed_, blocks_, data_epoch_ + 1}; }  // of the next data epoch
  // Whether this is the order of the same data, with the same seed.
  bool Equals(const SampleOrder& other) const {
    return rows_ == other.rows_ && seed_ == other.seed_ && blocks_ == other.blocks_ && data_epoch_ == other.data_epoch_;
  }

  // 1 when all samples have one permutation.
  int64_t windows() const { return windows_; }
  int64_t block_samples() const { return blocks_.block; }
  // The following need windows() > 1.
  struct Place {
    int64_t window = 0;
    int64_t index = 0;  // among the samples of the window, which are those of its blocks one after the other
  };
  Place PlaceOf(int64_t position) const;
  int64_t SamplesIn(int64_t window) const { return Start(window + 1) - Start(window); }
  // A part of a window that is adjacent in the data.
  struct Block {
    int64_t number = 0;  // in the data
    int64_t first = 0;   // index of its first sample in the window
    int64_t samples = 0;
  };
  int64_t BlocksIn(int64_t window) const { return FirstSlot(window + 1) - FirstSlot(window); }
  Block BlockIn(int64_t window, int64_t i) const;  // 0 <= i < BlocksIn

 private:
  // A slot is the place of a block in the order of blocks.
  int64_t FirstSlot(int64_t window) const;
  int64_t StartOfSlot(int64_t slot) const;  // position of its first sample
  int64_t SlotAt(int64_t position) const;
  int64_t WindowAt(int64_t slot) const;
  int64_t Start(int64_t window) const { return StartOfSlot(FirstSlot(window)); }

  int64_t rows_;
  uint64_t seed_;
  BlockOrder blocks_;
  int64_t data_epoch_;
  int64_t count_;    // of blocks
  int64_t missing_;  // samples that the last block has fewer than others
  int64_t windows_;
  Permutation order_;  // of blocks; of all samples where they have one permutation
  int64_t last_slot_;  // of the last block of the data
};

}  // namespace medley::worker
