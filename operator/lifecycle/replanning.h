// Replanning: what makes a running job ask for another plan, what a move would save, and the decision, which is
// published either way.
#pragma once

#include <absl/status/status.h>

#include <map>
#include <optional>
#include <set>
#include <string>

#include "common/base/clock.h"
#include "operator/api/training_job.h"
#include "operator/lifecycle/planning_inputs.h"
#include "operator/lifecycle/profiling.h"

namespace medley::ops::lifecycle {

class Pass;

struct ReplanningState {
  static constexpr char kOwner[] = "replanning";
  std::optional<base::SteadyTime> below_goal_since;
  std::string last_event;  // message of the last replan Event, not to repeat it
  std::string unmet;       // why no plan meets the goal now; empty: one does, or nothing was considered yet
};

// Considers another plan if something asks for one. Without a coordinator that reports, it does nothing. A job without
// elasticity gets another plan only when pods of its own cannot be scheduled.
absl::Status Replan(Pass& pass, const TrainingJob& job);

// True when the measured throughput is below the goal by more than measurements vary. Needs `pass.observed`.
bool IsBelowGoal(const Pass& pass, const TrainingJob& job);
// True when the job trains as planned and reaches its goal, so that it needs fewer passes.
bool IsSettled(const Pass& pass, const TrainingJob& job);
// Publishes an Event unless the last one had the same message.
void PublishReplan(Pass& pass, const char* event_reason, const std::string& message);
// No plan meets the goal now: publishes `message` as an Event, and in the condition Planned until NoteMetGoal.
void KeepUnmetPlan(Pass& pass, const std::string& message);
void NoteMetGoal(Pass& pass);
// Publishes an Event that says why a running job keeps its plan, unless an answer is only missing. The condition
// Planned stays True.
void PublishUnplanned(Pass& pass, const Unplanned& why);

}  // namespace medley::ops::lifecycle
