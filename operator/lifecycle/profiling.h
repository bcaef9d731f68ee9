// Profiling: measuring what each layer costs on each pool. A profile is measured once, by a profiler pod, and stored
// in a ConfigMap for later jobs with the same (model, schema, batch, pool).
#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/model/model.h"
#include "operator/api/training_job.h"
#include "operator/lifecycle/pools.h"
#include "operator/lifecycle/status.h"

namespace medley::ops::lifecycle {

class Pass;

// Failures of the pods of one name. `retry_at`: no pod of this name is created before.
struct PodFailures {
  int count = 0;
  std::string last_uid;  // of the pod that failed last, so that it is counted once
  base::SteadyTime retry_at{};
};

struct ProfilingState {
  std::set<std::string> wanted;                 // profiler pods whose measurements the job waits for
  std::map<std::string, PodFailures> failures;  // by profiler pod
};

struct Measured {
  std::optional<model::Profile> profile;
  std::optional<Unplanned> missing;  // without a profile: profilers run, or no pool has a unit; absent: the job failed
};

// The profile of the job's model on all pools that have a unit. Runs profilers where it is not stored.
absl::StatusOr<Measured> MeasureProfile(Pass& pass, const TrainingJob& job, const UsablePools& pools);

// The profiles that are stored and can be read, by pool. An unreadable one is deleted, so that it is measured again.
absl::StatusOr<std::map<std::string, model::Profile>> StoredProfiles(Pass& pass, const std::vector<std::string>& pools);

}  // namespace medley::ops::lifecycle
