// Planning: reads and stores the plan, and turns what the scheduling service has found into a new plan or a condition.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/model/forward.h"
#include "operator/api/training_job.h"
#include "operator/lifecycle/keeping.h"
#include "operator/lifecycle/pause.h"
#include "operator/lifecycle/pools.h"
#include "operator/lifecycle/search.h"
#include "operator/records/plan_record.h"
#include "operator/records/plan_request.h"

namespace medley::ops::lifecycle {

class Pass;

struct PlanningState {
  static constexpr char kOwner[] = "planning";
  // The plan whose units are reserved; 0: none, -1: a plan that was not stored.
  struct Reserved {
    int64_t generation = 0;
    bool with_fallback = false;
    std::string coordinator;  // the pod whose room is reserved
    bool operator==(const Reserved&) const = default;
  };
  Reserved reserved;
  // Plans in a row whose units could not be reserved, and the time before another one is asked for.
  int refusals = 0;
  Pause after_refusal;
  // The units, by pool, that the switch to the last plan that was refused would free, too late for its own pods.
  // Empty if it was refused for another reason.
  std::map<std::string, int> leaving;
  // For a job without a plan: the most units that are asked for, by pool, because more were free alone but not
  // together.
  std::map<std::string, int> together;
};

// Reserves the units of a plan that is about to be stored. False: they are not available; the condition Planned or an
// Event says why, and the job tries again.
absl::StatusOr<bool> ReserveUnitsFor(Pass& pass, const PlanRecord& record);
// A plan was found whose units are not available: the job asks for none for a while, longer each time.
void PauseAfterRefusal(Pass& pass);
void EndPauseAfterRefusal(Pass& pass);
// Reserves the units of the stored plan, and until it is in force those of the plan before it, unless this process has
// reserved them; without a plan, releases them.
absl::Status KeepUnitsReserved(Pass& pass);
// The plan whose units were reserved has been stored.
void NoteReserved(Pass& pass, const PlanRecord& record);
// Also of a stored plan: the job has ended.
absl::Status ReleaseUnits(Pass& pass);

// Plans a job that has no plan, and starts to run the plan. It takes several passes where the planner is slow.
absl::Status MakeFirstPlan(Pass& pass, const TrainingJob& job);

void ExplainInfeasible(Pass& pass, const std::vector<model::Reason>& reasons, const UsablePools& pools);
// Makes the feasible result of a search the job's plan. False: its units are not available any more. Errors: the plan
// is invalid, or could not be stored.
absl::StatusOr<bool> Accept(Pass& pass, const TrainingJob& job, const PlanSearch& search,
                            const model::PlanResult& result, Reason reason);
// What a plan that replaces the present one falls back to: the plan in force; null: none is. Needs a plan.
std::shared_ptr<const PlanRecord> FallbackOf(const Pass& pass);
// A generation that no plan or recovery of this job has had.
int64_t NextGeneration(const Pass& pass);
// Names that no new pod can get.
std::vector<std::string> PodNames(const Pass& pass);

}  // namespace medley::ops::lifecycle
