// Makes the computation of a block, whatever kind of model it is of. Needs no header of LibTorch.
#pragma once

#include <absl/status/statusor.h>

#include <memory>

#include "common/model/execution_plan.h"
#include "worker/device/device.h"
#include "worker/model/compute_threads.h"
#include "worker/model/graph.h"
#include "worker/pipeline/block_compute.h"

namespace medley::aten {

// A BlockModel, or an AtenBlock for a graph that was exported, which computes on `device`. Arguments and errors:
// theirs.
absl::StatusOr<std::unique_ptr<worker::BlockCompute>> MakeBlock(
    const worker::Graph& graph, model::OperationRange range, const worker::Optimizer& optimizer, uint64_t seed,
    std::shared_ptr<worker::ComputeThreads> threads = nullptr, int kept_updates = 1,
    std::shared_ptr<device::Device> device = nullptr);

}  // namespace medley::aten
