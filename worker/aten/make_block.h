// Makes the computation of a block, whatever kind of model it is of. Needs no header of LibTorch.
#pragma once

#include <absl/status/statusor.h>

#include <memory>

#include "worker/model/make_block.h"

namespace medley::worker::aten {

// A BlockMaker: makes an AtenBlock for a graph that was exported; for another one a LayerBlock where settings.device
// computes, else a BlockModel. Errors: theirs.
absl::StatusOr<std::unique_ptr<worker::BlockCompute>> MakeBlock(const worker::Graph& graph, model::OperationRange range,
                                                                const worker::BlockSettings& settings);

}  // namespace medley::worker::aten
