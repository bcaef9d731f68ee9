// The choice between plans with parameter servers, plans whose trainers keep the embedding rows, and plans whose rows
// are on the GPU of one trainer.
//
// All are questions of the same kind, each with its own closed form (cost/problem.h), so each is planned by itself and
// the better plan is the answer. A lower bound of two together is the smaller one. Pure.
#pragma once

#include <vector>

#include "common/model/plan_result.h"
#include "common/model/planning.h"
#include "common/model/reason.h"

namespace medley::sched {

// True if the request leaves the place open and some layer has rows in shards.
bool ChoosesRowsPlace(const model::PlanRequest& request);

// True if, besides, rows may be on a GPU: one whose memory is known and with which some layer with rows was measured.
bool MayUseDevices(const model::PlanRequest& request);

// The request for one place, with this part of the planner's time.
model::PlanRequest ForRowsPlace(const model::PlanRequest& request, model::RowsPlace place, int parts = 2);

// Where neither place has a plan: true if the only violated constraint of both is the same, and `one` is less far from
// what is available, so that it says what is enough.
bool NeedsLess(const std::vector<model::Reason>& one, const std::vector<model::Reason>& other);

// The better of two answers to one request; the first where they are equal. Its bounds hold for both places: `*_known`
// is false for a place whose planner ended without knowing whether a plan exists. `first` is that with servers, or, if
// `place` of the second is kDevice, the better one of those without it. A note says what the first costs where the
// second is better.
model::PlanResult BetterPlace(const model::PlanRequest& request, model::PlanResult first, bool first_known,
                              model::PlanResult second, bool second_known, model::RowsPlace place);

}  // namespace medley::sched
