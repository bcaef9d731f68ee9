// A planning request that is ready for the planner. Internal to handlers/.
#pragma once

#include <optional>

#include "common/model/planning.h"
#include "common/model/prediction.h"
#include "scheduler-service/handlers/handlers.h"
#include "scheduler-service/planner/plan.h"

namespace medley::sched {

struct Handlers::Prepared {
  model::PlanRequest request;
  PriceOrigin origin;
  std::optional<model::Prediction> prediction;  // the error of earlier predictions for this model
};

}  // namespace medley::sched
