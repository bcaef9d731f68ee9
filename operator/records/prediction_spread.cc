#include "operator/records/prediction_spread.h"

#include <cmath>
#include <string_view>

#include "common/model/execution_plan.h"
#include "common/model/model.h"
#include "common/model/operation_range.h"

namespace medley::ops {
namespace {

const model::LayerProfile* FindProfile(const model::Model& model, int layer, std::string_view pool) {
  if (layer < 0 || static_cast<size_t>(layer) >= model.layers.size()) return nullptr;
  for (const model::LayerProfile& profile : model.layers[static_cast<size_t>(layer)].profiles) {
    if (profile.resource_type == pool) return &profile;
  }
  return nullptr;
}

}  // namespace

double PredictionSpread(const model::Model& model, const model::ExecutionPlan& plan) {
  double slowest = 0;
  double spread = 0;
  for (const model::Stage& stage : plan.stages) {
    for (const model::Group& group : stage.groups) {
      double seconds = 0;
      double variance = 0;
      for (const model::OperationRange& range : stage.operations) {
        for (int layer = range.first; layer < range.end; ++layer) {
          const model::LayerProfile* profile = FindProfile(model, layer, group.pool);
          if (profile == nullptr) continue;
          seconds += profile->compute_seconds;
          variance += std::pow(profile->spread * profile->compute_seconds, 2);
        }
      }
      if (seconds / group.units <= slowest) continue;
      slowest = seconds / group.units;
      spread = std::sqrt(variance) / seconds;
    }
  }
  return spread;
}

}  // namespace medley::ops
