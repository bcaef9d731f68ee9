// Plans on devices within the bounds of a request: which devices, by kind and number, and then the plan of a planner on
// them.
//
// Planners minimise the seconds of a step on the devices that they are given. A bound of money or units, and an
// objective of money, ask for fewer devices; so the search plans on choices of devices, the most promising first, and
// skips those that are proven to be no better than the best plan so far. Every plan is judged by the simulator.
#pragma once

#include <absl/status/statusor.h>

#include <vector>

#include "common/model/forward.h"
#include "common/model/reason.h"
#include "scheduler-service/devices/figures.h"
#include "scheduler-service/devices/problem.h"
#include "scheduler-service/planning/candidate.h"
#include "scheduler-service/planning/planner.h"

namespace medley::sched {

struct Chosen {
  Candidate candidate;  // without a plan: no plan keeps the bounds, `reasons` say why
  Figures figures;      // of the plan
  int choices = 0;      // of devices that were planned on; 0: all devices only, which needed no choice
  std::vector<model::Reason> reasons;
};

// `question`: of `request`, but without its constraints, so that planners do not see them where all devices may be
// used. Where the limits or kMostPlanned end the search, the best plan found so far, and candidate.complete is false
// where it was the limits. The same (request, seed) gives the same result unless the time runs out.
// Errors: those of the planner.
inline constexpr int kMostPlanned = 256;
absl::StatusOr<Chosen> ChooseDevices(const Question& question, const model::PlanRequest& request,
                                     const Planner& planner, const Budget& limits);

}  // namespace medley::sched
