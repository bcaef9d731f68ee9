// A planning question on its way from the wire to the planner. Internal to handlers/.
#pragma once

#include <optional>

#include "scheduler-service/handlers/handlers.h"
#include "scheduler-service/planner/plan.h"

namespace medley::sched {

struct Handlers::Prepared {
  model::PlanRequest request;
  PriceOrigin origin;
  std::optional<model::Prediction> prediction;  // how far predictions of the model were off
};

}  // namespace medley::sched
