// Random samples of a model. For tests.
#pragma once

#include <cstdint>

#include "worker/data/batch.h"
#include "worker/model/graph.h"

namespace medley::worker::testing {

struct RandomSamples {
  int samples = 0;
  int table_rows = 0;     // ids are below this, so that samples have rows in common
  bool weighted = false;  // samples have weights
};

// The labels are those of the model's loss: numbers, classes, or 0 and 1.
Batch RandomBatch(const Graph& graph, uint64_t seed, const RandomSamples& kind);

}  // namespace medley::worker::testing
