// Members: the pod of each slot of the plan is created, and replaced when it fails.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "operator/api/training_job.h"
#include "operator/lifecycle/profiling.h"

namespace medley::ops::lifecycle {

class Pass;

struct MembersState {
  std::map<std::string, PodFailures> failures;  // by pod
  int64_t samples_at_failure = 0;               // at the last failure; progress since then clears earlier failures
  std::set<std::string> refused;                // pods that a quota did not admit
  std::set<std::string> deleted;                // UIDs of pods that the cache may still show as running
};

// Forgets deletions that the cache shows.
void ForgetDeletedPods(Pass& pass);

// May finish the job, when a member fails again and again without progress.
absl::Status EnsureMembers(Pass& pass, const TrainingJob& job);

}  // namespace medley::ops::lifecycle
