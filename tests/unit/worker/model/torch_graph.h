// A graph of Medley's own layers, computed by LibTorch in double precision with its autograd. For tests.
#pragma once

#include <vector>

#include "worker/data/batch.h"
#include "worker/model/graph.h"

namespace medley::worker::testing {

struct TorchResult {
  double loss = 0;                         // mean over the samples
  std::vector<std::vector<double>> dense;  // gradients, in the order of graph.Parameters(false)
  std::vector<std::vector<double>> rows;   // gradients of the rows of each table
};

// `dense` and `rows`: the values of the parameters; a table has only the rows that the ids of `batch` name.
TorchResult ComputeInTorch(const Graph& graph, const BatchView& batch, const std::vector<std::vector<float>>& dense,
                           const std::vector<std::vector<float>>& rows);

}  // namespace medley::worker::testing
