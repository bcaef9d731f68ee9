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
  // The plan that was sent last.
  std::string sent_to;          // address of the coordinator
  int64_t sent_generation = 0;  // 0: this process has sent none; -1: the one before must be sent again
  base::SteadyTime sent_at{};
};

absl::Status RunPlan(Pass& pass, const TrainingJob& job);

// The coordinator trains the plan in the memory, or a recovery of it, and prepares no other generation.
bool IsInForce(const Pass& pass);

// Connects to the coordinator if it runs; creates nothing. `pass.coordinator` stays empty without one.
absl::Status ConnectToRunning(Pass& pass, const TrainingJob& job);

// Disconnects from the coordinator, which is being replaced or stopped; its next process gets the plan again.
void ForgetCoordinator(Pass& pass);

// OK unless a newer leader has been served: then the pass ends. Either this process has lost its lead and will notice
// it soon, or the Lease was deleted and its terms began again: then the elector takes a newer one.
absl::Status CheckStaleLeader(Pass& pass, const absl::Status& refusal, const char* what);
// The same of what the coordinator reports, before anything is created for a plan that may be old.
absl::Status CheckObservedLeader(Pass& pass);

}  // namespace medley::ops::lifecycle
