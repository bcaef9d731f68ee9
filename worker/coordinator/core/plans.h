// The plans that the operator has sent.
#pragma once

#include <cstdint>
#include <optional>

#include "medley/job/v1/coordinator.pb.h"

namespace medley::worker {

struct PlansState {
  std::optional<job::v1::ApplyPlanRequest> desired;
  std::optional<job::v1::ApplyPlanRequest> first;
  // The last plan, when a member of it can never run it. `desired` is then the plan in force.
  std::optional<job::v1::RefusedPlan> refused;
  int64_t leader_term = 0;  // the newest term served
};

}  // namespace medley::worker
