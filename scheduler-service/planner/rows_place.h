// The choice between plans with parameter servers and plans whose trainers keep the embedding rows.
//
// Both are questions of the same kind, each with its own closed form (cost/problem.h), so each is planned by itself and
// the better plan is the answer. A lower bound of both together is the smaller of the two. Pure.
#pragma once

#include <vector>

#include "common/model/plan_result.h"
#include "common/model/planning.h"
#include "common/model/reason.h"

namespace medley::sched {

// True if the request leaves the place open and some layer has rows in shards.
bool ChoosesRowsPlace(const model::PlanRequest& request);

// The request for one place, with half of the planner's time.
model::PlanRequest ForRowsPlace(const model::PlanRequest& request, model::RowsPlace place);

// Where neither place has a plan: true if the only violated constraint of both is the same, and `one` is less far from
// what is available, so that it says what is enough.
bool NeedsLess(const std::vector<model::Reason>& one, const std::vector<model::Reason>& other);

// The better of two answers to one request; that with servers where they are equal. Its bounds hold for both places:
// `servers_known` and `trainers_known` are false for a place whose planner ended without knowing whether a plan exists.
// A note says what the best plan with servers costs where the rows are in trainers.
model::PlanResult BetterPlace(const model::PlanRequest& request, model::PlanResult servers, bool servers_known,
                              model::PlanResult trainers, bool trainers_known);

}  // namespace medley::sched
