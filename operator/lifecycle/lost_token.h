// A job whose token was lost: the operator's key was replaced, or an earlier operator made a random token, whose Secret
// this one may not read. The token is then known only to the processes of the job. They train on, but the operator
// cannot talk to their coordinator, and pods that are created get another token and cannot join.
//
// So the job is left alone while it lacks nothing. Once a member is lost, or the coordinator's container is restarted
// (it reads the new Secret), all pods are replaced, and training resumes from the last checkpoint.
#pragma once

#include <absl/status/status.h>

#include <string>

#include "operator/api/training_job.h"

namespace medley::ops::lifecycle {

class Pass;

struct LostTokenState {
  static constexpr char kOwner[] = "lost_token";
  std::string coordinator_uid;  // of the pod that was reported; empty: none
  int restarts = 0;             // of its container, at that time
};

// True when the coordinator's pod was created with another token than that of the Secret.
bool HasLostToken(const Pass& pass, const TrainingJob& job);

// Takes the place of RunPlan for such a job.
absl::Status TrainWithLostToken(Pass& pass, const TrainingJob& job);

}  // namespace medley::ops::lifecycle
