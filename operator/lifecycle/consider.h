// Whether a running job moves to another plan: asks for one, compares it with the present plan, and publishes the
// decision either way.
#pragma once

#include <absl/status/status.h>

#include <string>

#include "operator/api/training_job.h"
#include "operator/lifecycle/planning_inputs.h"
#include "operator/lifecycle/profiling.h"

namespace medley::ops::lifecycle {

class Pass;

struct ConsiderState {
  static constexpr char kOwner[] = "consider";
  std::optional<PlanningInputs> considered;
  // A move that would save enough, but came too soon after the last one: it is considered again when its time has come.
  struct Delayed {
    Reason reason;
    base::SteadyTime until;
  };
  std::optional<Delayed> delayed;
  // What a plan was asked for with that no units could be had for. Other inputs end the pause after it.
  std::optional<PlanningInputs> refused;
};

struct Considered {
  Reason reason;
  bool forced = false;     // the job moves to a plan that does not pay as well
  PlanningInputs inputs;   // with the pools in the zones that the job keeps
  PlanningInputs seen;     // as `inputs`, but with all units; differs where some are not offered to the planner
  bool evacuates = false;  // nodes that are about to be lost
};

// Asks for a plan with the pools of `profiled`, which has a profile. Where their zones give no plan, or none that is
// worth a move, other zones are considered. If the planner has not answered in this pass, SearchState::pending is set,
// and ContinueSearch goes on; a search that the job has already is given up.
absl::Status Consider(Pass& pass, const TrainingJob& job, const Considered& what, const ProfiledPools& profiled);

// What the job was planned with last: nothing else asks for another plan.
void NoteConsidered(Pass& pass, const PlanningInputs& inputs);
void NoteConsideredUnits(Pass& pass, const std::string& pool, int units);
void ForgetConsidered(Pass& pass);  // the job has no plan any more

// What the job has done and spent so far. It must be observed.
JobProgress ProgressOf(const Pass& pass);

// Goes on with the search of a job with a plan. Without a search it does nothing.
absl::Status ContinueSearch(Pass& pass, const TrainingJob& job);

}  // namespace medley::ops::lifecycle
