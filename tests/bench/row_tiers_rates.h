// Measures pulls and pushes of a table whose rows are mostly on the disk, in turn with the same table in memory: a part
// of `./dev bench rows`.
#pragma once

#include <cstddef>
#include <cstdint>

namespace medley::worker {

struct TierRatesOptions {
  int64_t rows = 1'000'000;
  int columns = 16;
  size_t batch = 512;    // samples of a step, with 26 keys each
  double budget = 0.25;  // of the bytes of all rows in memory
  int rounds = 7;
  double seconds = 2;   // of one measurement
  bool inside = false;  // only inside the process, without gRPC
};

// Prints rates, the share of rows that pulls found in memory, and resident memory.
void PrintTierRates(const TierRatesOptions& options);

}  // namespace medley::worker
