#include "common/model/observation.h"

#include <cmath>

#include "common/base/status.h"
#include "common/model/checks.h"

namespace medley::model {
namespace {

bool Profiled(const Layer& layer, const std::string& type) {
  for (const LayerProfile& p : layer.profiles) {
    if (p.resource_type == type) return true;
  }
  return false;
}

absl::Status CheckStage(const Model& model, const StageMeasurement& stage, int expected_first,
                        const std::string& path) {
  if (stage.first_layer != expected_first) {
    return base::InvalidArgument("{}.firstLayer: must be {}, the next layer, is {}", path, expected_first,
                                 stage.first_layer);
  }
  if (stage.last_layer < stage.first_layer || stage.last_layer >= std::ssize(model.layers)) {
    return base::InvalidArgument("{}.lastLayer: must be in [{}, {}], is {}", path, stage.first_layer,
                                 std::ssize(model.layers) - 1, stage.last_layer);
  }
  for (int l = stage.first_layer; l <= stage.last_layer; ++l) {
    if (Profiled(model.layers[static_cast<size_t>(l)], stage.resource_type)) continue;
    return base::InvalidArgument("{}.resourceType: layer {} has no profile of type '{}'", path, l, stage.resource_type);
  }
  if (stage.units < 1) return base::InvalidArgument("{}.units: must be at least 1, is {}", path, stage.units);
  MEDLEY_RETURN_IF_ERROR(CheckPositive(stage.compute_seconds, path + ".computeSeconds"));
  return CheckNotNegative(stage.comm_seconds, path + ".commSeconds");
}

}  // namespace

absl::Status Validate(const JobObservation& observation) {
  const Model& model = observation.request.model;
  MEDLEY_RETURN_IF_ERROR(base::Annotate(Validate(model), "request"));
  MEDLEY_RETURN_IF_ERROR(base::Annotate(Validate(observation.request.training), "request"));
  if (observation.stages.empty()) return base::InvalidArgument("stages: must not be empty");
  int next = 0;
  for (size_t i = 0; i < observation.stages.size(); ++i) {
    MEDLEY_RETURN_IF_ERROR(CheckStage(model, observation.stages[i], next, fmt::format("stages[{}]", i)));
    next = observation.stages[i].last_layer + 1;
  }
  if (next != std::ssize(model.layers)) {
    return base::InvalidArgument("stages: end with layer {}, the model has {} layers", next - 1, model.layers.size());
  }
  MEDLEY_RETURN_IF_ERROR(CheckPositive(observation.throughput, "throughput"));
  MEDLEY_RETURN_IF_ERROR(CheckPositive(observation.batch_size, "batchSize"));
  if (observation.server_units < 0) {
    return base::InvalidArgument("serverUnits: must not be negative, is {}", observation.server_units);
  }
  return CheckNotNegative(observation.usd_per_hour, "usdPerHour");
}

}  // namespace medley::model
