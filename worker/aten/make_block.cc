#include "worker/aten/make_block.h"

#include <utility>

#include "common/base/status.h"
#include "worker/aten/aten_block.h"
#include "worker/model/block_model.h"

namespace medley::aten {

absl::StatusOr<std::unique_ptr<worker::BlockCompute>> MakeBlock(const worker::Graph& graph, model::OperationRange range,
                                                                const worker::Optimizer& optimizer, uint64_t seed,
                                                                std::shared_ptr<worker::ComputeThreads> threads,
                                                                int kept_updates,
                                                                std::shared_ptr<device::Device> device) {
  if (graph.imported != nullptr) {
    return AtenBlock::Create(graph, range,
                             {.optimizer = optimizer,
                              .seed = seed,
                              .threads = threads == nullptr ? 1 : threads->size(),
                              .kept_updates = kept_updates,
                              .device = std::move(device)});
  }
  return worker::BlockModel::Create(graph, range, optimizer, seed, std::move(threads), kept_updates);
}

}  // namespace medley::aten
