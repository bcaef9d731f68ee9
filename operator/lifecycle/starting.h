// Pods that cannot start: the user learns why within a minute, a corrected template replaces them, and the job does not
// wait without end.
#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <set>
#include <string>
#include <utility>

#include "common/base/clock.h"
#include "operator/api/training_job.h"

namespace medley::ops::lifecycle {

class Pass;

struct StartingState {
  static constexpr char kOwner[] = "starting";
  std::map<std::string, base::SteadyTime> refused_since;   // by UID of a pod that the kubelet refuses
  std::set<std::pair<std::string, std::string>> reported;  // UID and reason of the Events
  std::string sentence;                                    // of the first pod that cannot start; empty: none
};

// Looks at the coordinator's pod and those of the plan. Pods that never started and whose template is outdated are
// deleted, so that a later pass creates them anew. A pod that the kubelet refuses for JobOptions::start_deadline, or
// that is created for JobOptions::slow_start_deadline: the job goes back to the plan in force, or has failed when none
// is. True: the pass ends here.
absl::StatusOr<bool> HandleStartFailures(Pass& pass, const TrainingJob& job);

}  // namespace medley::ops::lifecycle
