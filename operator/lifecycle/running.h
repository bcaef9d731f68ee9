// Running: the coordinator and the pods of the plan exist, the coordinator has the plan, and pods that are not in the
// plan are deleted once it is in force.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <string>

#include "common/base/clock.h"
#include "operator/api/training_job.h"

namespace medley::ops::lifecycle {

class Pass;

struct RunningState {
  static constexpr char kOwner[] = "running";
  // The plan that was sent last.
  std::string sent_to;          // address of the coordinator
  int64_t sent_generation = 0;  // 0: this process has sent none; -1: the one before must be sent again
  base::SteadyTime sent_at{};
};

// Runs the plan in the memory, and replans where needed. Called in every pass over a job with a plan.
absl::Status RunPlan(Pass& pass, const TrainingJob& job);

// True when the coordinator trains the plan in the memory, or a recovery of it, and prepares no other generation.
bool IsInForce(const Pass& pass);

// Connects to the coordinator if it runs, also while its pod terminates; creates nothing. Without one,
// `pass.coordinator` stays empty.
absl::Status ConnectToRunning(Pass& pass, const TrainingJob& job);

// The coordinator gets the plan again, which it may have.
void SendPlanAgain(Pass& pass);
// Disconnects from the coordinator, which is being replaced or stopped; its next process gets the plan again.
void ForgetCoordinator(Pass& pass);

// Returns an error, with which the pass ends, when the coordinator has refused because it has served a newer leader.
// Either this process no longer leads and will notice it soon, or the Lease was deleted and its terms began again: then
// the elector takes a newer term.
absl::Status CheckStaleLeader(Pass& pass, const absl::Status& refusal, const char* what);
// The same check on the coordinator's observation, before anything is created for a plan that may be outdated.
absl::Status CheckObservedLeader(Pass& pass);

}  // namespace medley::ops::lifecycle
