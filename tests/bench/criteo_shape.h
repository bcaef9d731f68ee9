// Generates samples like the Criteo data: 26 categorical fields with its cardinalities and a Zipf skew, 13 numbers, and
// labels that depend on both. tests/bench/peers/criteo_shape.py uses the same distributions.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <memory>

#include "common/base/rng.h"
#include "worker/data/dataset.h"
#include "worker/data/row_parser.h"

namespace medley::worker {

inline constexpr std::array<int, 26> kCriteoCardinalities = {
    1396, 553,   2594031, 698469, 290,  23,   12048, 608,     3,  65156, 5309,   2186509, 3128,
    26,   12750, 1537323, 10,     5002, 2118, 4,     1902327, 17, 15,    135790, 94,      84305};

// Draws a rank in [0, n) with density proportional to (rank + 1)^-1.1, by inverting the continuous distribution.
inline int64_t ZipfRank(double u, int64_t n) {
  constexpr double kExponent = 1.1;
  const double end = std::pow(static_cast<double>(n) + 1, 1 - kExponent);
  const double x = std::pow(1 - u * (1 - end), 1 / (1 - kExponent));
  return std::min(n - 1, static_cast<int64_t>(x) - 1);
}

inline std::shared_ptr<const Dataset> CriteoShape(int samples, int64_t embedding_rows, uint64_t seed) {
  base::Rng rng(seed);
  Batch rows;
  rows.shape = {26, 13};
  rows.samples = samples;
  for (int i = 0; i < samples; ++i) {
    double logit = -1;
    for (size_t field = 0; field < kCriteoCardinalities.size(); ++field) {
      const int64_t rank = ZipfRank(rng.Uniform(), kCriteoCardinalities[field]);
      const uint64_t id = base::Mix64(static_cast<uint64_t>(rank) ^ (uint64_t{field} << 40));
      rows.ids.push_back(static_cast<int32_t>(id % static_cast<uint64_t>(embedding_rows)));
      logit += (static_cast<double>(id >> 40) * 0x1.0p-24 - 0.5) * 0.8;
    }
    for (int n = 0; n < 13; ++n) {
      const double x = rng.Uniform(-1.7, 1.7);
      rows.numerics.push_back(static_cast<float>(x));
      logit += 0.1 * x;
    }
    rows.labels.push_back(rng.Uniform() < 1 / (1 + std::exp(-logit)) ? 1.0F : 0.0F);
  }
  return Dataset::FromBatch(std::move(rows));
}

}  // namespace medley::worker
