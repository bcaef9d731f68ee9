#include "operator/lifecycle/feedback.h"

#include "operator/lifecycle/job_observation.h"
#include "operator/lifecycle/pass.h"
#include "operator/lifecycle/profiling.h"

namespace medley::ops::lifecycle {

absl::Status OfferMeasurements(Pass& pass, const TrainingJob& job) {
  FeedbackState& state = pass.Own(&Memory::feedback);
  const PlanRecord& record = *pass.memory.stored_plan.record;
  if (pass.observed == nullptr || !IsComparable(record, *pass.observed)) {
    state.comparable_generation = 0;
    return absl::OkStatus();
  }
  const base::SteadyTime now = pass.world.steady;
  if (state.comparable_generation != pass.observed->generation) {
    state.comparable_generation = pass.observed->generation;
    state.comparable_since = now;
  }
  if (now < state.comparable_since + pass.options.observe_window) return absl::OkStatus();
  if (state.offered_at && now < *state.offered_at + pass.options.observe_interval) return absl::OkStatus();
  state.offered_at = now;  // also when it cannot be built, so that it is not tried in every pass
  if (pass.profile_hash.empty()) return absl::OkStatus();
  const std::vector<std::string> pools = TrainerPools(record);
  MEDLEY_ASSIGN_OR_RETURN(const auto stored, StoredProfiles(pass, pools));
  std::vector<model::Profile> profiles;
  for (const std::string& pool : pools) {
    const auto profile = stored.find(pool);
    if (profile == stored.end()) return absl::OkStatus();
    profiles.push_back(profile->second);
  }
  auto observation = BuildJobObservation(job, record, *pass.observed, profiles);
  if (observation) pass.Publish(OfferObservation{*std::move(observation)});
  return absl::OkStatus();
}

}  // namespace medley::ops::lifecycle
