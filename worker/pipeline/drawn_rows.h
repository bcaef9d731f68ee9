// Rows of a table that are drawn at random beside those of a sample, for noise-contrastive estimation. Pure.
#pragma once

#include <cstdint>
#include <span>

namespace medley::worker {

// What the draws of a sample depend on, beside its place in the epoch. The placement is not a part of it, so every plan
// draws the same rows.
struct DrawnRows {
  uint64_t seed = 0;  // of the training
  int operation = 0;  // that has the table
  int64_t rows = 1;   // of the table
  int64_t data_epoch = 0;
};

// Fills `to` with rows of the table, each equally probable. `position`: of the sample in the order of the epoch.
void DrawRows(const DrawnRows& of, int64_t position, std::span<int32_t> to);

}  // namespace medley::worker
