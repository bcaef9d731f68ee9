// Where the operations of a block take their inputs from, and which outputs leave the block. Pure.
#pragma once

#include <absl/status/status.h>

#include <vector>

#include "common/model/forward.h"
#include "worker/data/batch.h"
#include "worker/model/graph.h"
#include "worker/pipeline/block_compute.h"

namespace medley::worker {

// An input of an operation: the output of another one of the block, or an input of the block.
struct Source {
  bool inside = true;
  size_t index = 0;  // of the operation within the block, or into BlockShape::inputs
};

struct BlockShape {
  std::vector<std::vector<Source>> sources;  // by operation of the block, in the order of Operation::inputs
  std::vector<BlockValue> inputs;            // by operation
  std::vector<BlockValue> outputs;           // by operation
};

// `range` is within the graph.
BlockShape ShapeOfBlock(const Graph& graph, model::OperationRange range);

// The lists of samples (RowParts) that the computation of the block needs: those of inner blocks are none.
unsigned ReadsOf(const Graph& graph, model::OperationRange range);

// InvalidArgument unless the batch has the ids, numerics and labels of its samples.
absl::Status CheckBatch(const SampleShape& shape, const BatchView& batch);
// InvalidArgument unless `values` are the expected ones of so many samples; `what` is the word for one.
absl::Status CheckBlockValues(const char* what, const std::vector<BlockValue>& expected, Values values, int samples);

}  // namespace medley::worker
