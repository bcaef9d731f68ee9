#include "worker/aten/make_block.h"

#include "worker/aten/aten_block.h"
#include "worker/aten/layer_block.h"

namespace medley::worker::aten {

absl::StatusOr<std::unique_ptr<worker::BlockCompute>> MakeBlock(const worker::Graph& graph, model::OperationRange range,
                                                                const worker::BlockSettings& settings) {
  if (graph.imported == nullptr && settings.device == nullptr) return worker::MakeModelBlock(graph, range, settings);
  if (graph.imported == nullptr) return LayerBlock::Create(graph, range, settings);
  return AtenBlock::Create(graph, range,
                           {.optimizer = settings.optimizer,
                            .seed = settings.seed,
                            .threads = settings.threads == nullptr ? 1 : settings.threads->size(),
                            .kept_updates = settings.kept_updates,
                            .device = settings.device,
                            .precision = settings.precision});
}

}  // namespace medley::worker::aten
