// Members: the pod of each slot of the plan is created, and replaced when it fails.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <map>
#include <string>

#include "common/base/clock.h"
#include "operator/api/training_job.h"

namespace medley::ops::lifecycle {

class Pass;

// Failures of the pods of one name. `retry_at`: no pod of this name is created before.
struct PodFailures {
  int count = 0;
  int disruptions = 0;   // they delay the next pod as failures do, and count towards no limit
  std::string last_uid;  // of the pod that failed last, so that it is counted once
  base::SteadyTime retry_at{};
  std::string how;  // it failed last: "failed with exit code 3: CAUSE"; empty: unknown
};

struct MembersState {
  static constexpr char kOwner[] = "members";
  std::map<std::string, PodFailures> failures;  // by pod
  int64_t samples_at_failure = 0;               // at the last failure; progress since then clears earlier failures
};

// May finish the job, when a member fails again and again without progress.
absl::Status EnsureMembers(Pass& pass, const TrainingJob& job);

}  // namespace medley::ops::lifecycle
