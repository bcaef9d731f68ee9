// Makes the computation of a block.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "common/model/operation_range.h"
#include "common/model/table_place.h"
#include "worker/model/compute_threads.h"
#include "worker/model/graph.h"
#include "worker/params/optimizer.h"
#include "worker/pipeline/block_compute.h"

namespace medley::worker::device {
class Device;
}

namespace medley::worker {

// What products are computed in (spec.training.precision). Parameters, their gradients and sums are float32.
enum class Precision { kFloat32, kTf32, kBfloat16 };

struct BlockSettings {
  Optimizer optimizer;
  uint64_t seed = 1;
  std::shared_ptr<ComputeThreads> threads;  // null: the calling thread only
  int kept_updates = 1;                     // how many steps can be undone, >= 0
  std::shared_ptr<device::Device> device;   // that computes; null: the CPU
  Precision precision = Precision::kFloat32;
  model::Tables tables = {};  // where the plan has the tables of a block on a device
};

// That of spec.training.precision, which the schema has checked.
Precision PrecisionOf(std::string_view name);

// Makes the block of these operations of the graph. Thread-safe. A program that computes models which came from PyTorch
// has one that needs LibTorch (aten::MakeBlock), so trainer and profiler are given theirs.
using BlockMaker = std::function<absl::StatusOr<std::unique_ptr<BlockCompute>>(
    const Graph& graph, model::OperationRange range, const BlockSettings& settings)>;

// A BlockModel, on the CPU. Errors: Unimplemented for a graph that came from PyTorch; those of BlockModel.
absl::StatusOr<std::unique_ptr<BlockCompute>> MakeModelBlock(const Graph& graph, model::OperationRange range,
                                                             const BlockSettings& settings);

}  // namespace medley::worker
