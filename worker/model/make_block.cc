#include "worker/model/make_block.h"

#include "common/base/status.h"
#include "worker/model/block_model.h"

namespace medley::worker {

Precision PrecisionOf(std::string_view name) {
  if (name == "bfloat16") return Precision::kBfloat16;
  return name == "tf32" ? Precision::kTf32 : Precision::kFloat32;
}

absl::StatusOr<std::unique_ptr<BlockCompute>> MakeModelBlock(const Graph& graph, model::OperationRange range,
                                                             const BlockSettings& settings) {
  if (graph.imported != nullptr) {
    return base::Unimplemented("this program cannot compute a model that came from PyTorch: it has no LibTorch");
  }
  return BlockModel::Create(graph, range, settings.optimizer, settings.seed, settings.threads, settings.kept_updates);
}

}  // namespace medley::worker
