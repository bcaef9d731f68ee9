#include "worker/model/make_block.h"

#include "common/base/status.h"
#include "worker/model/block_model.h"

namespace medley::worker {

absl::StatusOr<std::unique_ptr<BlockCompute>> MakeModelBlock(const Graph& graph, model::OperationRange range,
                                                             const BlockSettings& settings) {
  if (graph.imported != nullptr) {
    return base::Unimplemented("this program cannot compute a model that came from PyTorch: it has no LibTorch");
  }
  return BlockModel::Create(graph, range, settings.optimizer, settings.seed, settings.threads, settings.kept_updates);
}

}  // namespace medley::worker
