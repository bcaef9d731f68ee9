// Profiles as a job sees them: which of its pools have one, which are still measured, and whether to wait for those.
// operator/profiling measures; a pool without a profile is left out of plans until it has one.
#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/model/profile.h"
#include "operator/api/training_job.h"
#include "operator/lifecycle/pools.h"
#include "operator/lifecycle/status.h"

namespace medley::ops::lifecycle {

class Pass;

struct ProfilingState {
  static constexpr char kOwner[] = "profiling";
  // For a job without a plan: the pools that it was last planned with, and since when that plan has been feasible.
  std::set<std::string> planned_with;
  std::optional<base::SteadyTime> feasible_since;
};

// The pools that a job may be planned with.
struct ProfiledPools {
  UsablePools pools;                      // those with a profile, and the pool for parameter servers
  std::optional<model::Profile> profile;  // of every pool that has one; nullopt: none has
  std::vector<std::string> measuring;     // pools measured now, or of which nothing is known yet
  std::optional<Unplanned> why;
  // Why no pool can ever be measured, as a sentence; empty while one can.
  std::string hopeless;
};
absl::StatusOr<ProfiledPools> FindProfiledPools(Pass& pass, const TrainingJob& job, const UsablePools& pools);

// A job without a plan waits for pools that are being measured. Once a plan with the measured pools is feasible, it
// waits for spec.profiling.wait at most. MustLookForPlan: the planner must be asked, because no plan was feasible yet,
// a pool was measured since, or the wait is over.
bool MustLookForPlan(Pass& pass, const TrainingJob& job, const ProfiledPools& profiled);
void RememberFirstPlan(Pass& pass, const ProfiledPools& profiled, bool feasible);
void ForgetProfiling(Pass& pass);  // the job has a plan
bool MustWaitForProfiles(Pass& pass, const TrainingJob& job, const ProfiledPools& profiled);
Unplanned WaitingForProfiles(const ProfiledPools& profiled, bool feasible);

// The profiles that are stored and can be read, by pool.
absl::StatusOr<std::map<std::string, model::Profile>> StoredProfiles(Pass& pass, const std::vector<std::string>& pools);

}  // namespace medley::ops::lifecycle
