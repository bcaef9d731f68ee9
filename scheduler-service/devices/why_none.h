// Why no plan on the devices of a request keeps its bounds, with what to change. Pure.
#pragma once

#include <vector>

#include "common/model/forward.h"
#include "common/model/planning.h"
#include "scheduler-service/devices/figures.h"

namespace medley::sched {

// `plans`: what plans without bounds cost and reach; none keeps all of `constraints`. Returns one reason for each bound
// of a smallest set that none of the plans keeps together, with the value that the plan has which keeps all other
// bounds and comes nearest. Where no plan keeps the others, the nearest of those that keep the rest of the set, and the
// message says so. These are values of plans that were found, not proven ones.
std::vector<model::Reason> WhyNone(const model::Constraints& constraints, const std::vector<Figures>& plans);

// One reason for each pool of the cluster that has no price, where the objective or a bound of the request is about
// money.
std::vector<model::Reason> UnpricedDevices(const model::PlanRequest& request);

}  // namespace medley::sched
