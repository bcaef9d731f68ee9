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

// 15 minutes after the first time, twice as long each further time, at most 4 hours; forgotten after 8 hours without.
struct StuckZone {
  int failures = 0;
  base::SteadyTime avoided_until{};
};
void AvoidZone(StuckZone& zone, base::SteadyTime now);

struct ReplanningState {
  std::optional<PlanningInputs> considered;
  std::optional<base::SteadyTime> below_goal_since;
  // By pool: zones in which pods found no node or no plan was found since a plan was last in force.
  std::map<std::string, std::set<std::string>> avoided_zones;
  // By pool and zone: pods found no node there. The zone is avoided for a while, however cheap it is.
  std::map<std::string, std::map<std::string, StuckZone>> stuck_zones;
  // A move that would save enough, but came too soon after the last one: it is considered again when its time has come.
  struct Delayed {
    std::string reason;
    base::SteadyTime until;
  };
  std::optional<Delayed> delayed;
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
// Publishes an Event that says why a running job keeps its plan, unless an answer is only missing. The condition
// Planned stays True.
void PublishUnplanned(Pass& pass, const Unplanned& why);

}  // namespace medley::ops::lifecycle
