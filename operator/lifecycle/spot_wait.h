// Spot units of a job with a deadline: what was seen of them, and whether the job waits for them when they are lost.
//
// Without it, a job whose spot pods find no node takes what it can have at once, however expensive. With a deadline
// there may be time to wait: operator/spot decides that from the time that is left, prices, and how long units lived
// and stayed away so far. On-demand units are taken when waiting is expected to cost more, which is at the latest
// when no time is left. A job on on-demand units does not return to spot units when another loss could make it late.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "common/model/plan_result.h"
#include "operator/api/training_job.h"
#include "operator/lifecycle/pause.h"
#include "operator/lifecycle/pools.h"
#include "operator/lifecycle/replan_decision.h"
#include "operator/lifecycle/search.h"
#include "operator/spot/zone_record.h"

namespace medley::ops::lifecycle {

class Pass;

// Lost when the operator restarts: a job then begins with the prior again (zone_record.h).
struct SpotWaitState {
  static constexpr char kOwner[] = "spot_wait";
  std::map<std::string, spot::ZoneRecord> records;  // by pool: of the spot pools that the job has used
  Pause wait;                                       // before it is considered again whether the job waits
};

// Notes which spot pools of the plan have units for it now. Does nothing for a job without a deadline.
void NoteSpotUnits(Pass& pass, const TrainingJob& job, const UsablePools& pools);
// True while a job that decided to wait for spot units looks at nothing else.
bool WaitsForSpot(Pass& pass);

// Fills in what interruptions of spot units are expected to cost: by what the job itself saw if it has a deadline, else
// by what the statuses of the pools say (operator/records/interruptions.h).
void AddSpotRisk(const Pass& pass, const TrainingJob& job, const PlanSearch& search, const model::PlanResult& found,
                 MoveInputs& inputs);

struct SpotAdvice {
  std::string reason;    // CamelCase: WaitsForSpot, NoSpareTime
  std::string sentence;  // for an Event: the numbers behind it
};
// Why the job does not move to the plan that was found; nullopt: nothing speaks against it. After WaitsForSpot the job
// considers it again soon.
std::optional<SpotAdvice> AdviseAgainstMove(Pass& pass, const TrainingJob& job, const PlanSearch& search,
                                            const model::PlanResult& found, const MoveInputs& inputs);

}  // namespace medley::ops::lifecycle
