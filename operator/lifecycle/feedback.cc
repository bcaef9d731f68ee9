#include "operator/lifecycle/feedback.h"

#include <algorithm>
#include <cmath>

#include "common/model/observation.h"
#include "operator/lifecycle/consider.h"
#include "operator/lifecycle/job_observation.h"
#include "operator/lifecycle/pass.h"
#include "operator/lifecycle/profiling.h"

namespace medley::ops::lifecycle {
namespace {

constexpr double kNotable = 1.15;

bool Differs(const Pass& pass) {
  const double promised = pass.memory.stored_plan.record->plan.estimate.throughput;
  const double measured = pass.observed->throughput;
  return promised > 0 && measured > 0 && std::abs(std::log(measured / promised)) > std::log(kNotable);
}

void Forget(FeedbackState& state) {
  state.differing = 0;
  state.consider_at = FeedbackState().consider_at;
}

// The measured profiles of the pools that the job may use, and of those that it runs on. Empty: one that it runs on has
// none.
absl::StatusOr<std::vector<model::Profile>> ProfilesOf(Pass& pass, const UsablePools& usable) {
  const std::vector<std::string> running = TrainerPools(*pass.memory.stored_plan.record);
  std::vector<std::string> pools = running;
  for (const std::string& pool : usable.Names()) {
    if (std::ranges::find(running, pool) == running.end()) pools.push_back(pool);
  }
  MEDLEY_ASSIGN_OR_RETURN(const auto stored, StoredProfiles(pass, pools));
  std::vector<model::Profile> profiles;
  for (const std::string& pool : pools) {
    const auto profile = stored.find(pool);
    if (profile != stored.end()) profiles.push_back(profile->second);
    if (profile == stored.end() && std::ranges::find(running, pool) != running.end()) {
      return std::vector<model::Profile>();
    }
  }
  return profiles;
}

}  // namespace

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
    Forget(state);
  }
  if (now < state.comparable_since + pass.options.observe_window) return absl::OkStatus();
  if (state.offered_at && now < *state.offered_at + pass.options.observe_interval) return absl::OkStatus();
  state.offered_at = now;  // also when it cannot be built, so that it is not tried in every pass
  if (pass.profile_hash.empty()) return absl::OkStatus();
  MEDLEY_ASSIGN_OR_RETURN(const PoolChoice choice, FindUsablePools(pass, job));
  if (choice.refusal) return absl::OkStatus();
  MEDLEY_ASSIGN_OR_RETURN(std::vector<model::Profile> profiles, ProfilesOf(pass, choice.pools));
  if (profiles.empty()) return absl::OkStatus();
  auto observation =
      BuildJobObservation(job, record, *pass.observed, {std::move(profiles), choice.pools.Offers(), ProgressOf(pass)});
  if (observation) {
    ++state.differing;
    if (!Differs(pass)) Forget(state);
    pass.Publish(OfferObservation{std::make_shared<const model::JobObservation>(*std::move(observation))});
  }
  return absl::OkStatus();
}

bool DiffersFromPromise(const Pass& pass) {
  const FeedbackState& state = pass.memory.feedback;
  if (pass.observed == nullptr || state.comparable_generation != pass.observed->generation) return false;
  return state.differing >= state.consider_at && IsComparable(*pass.memory.stored_plan.record, *pass.observed) &&
         Differs(pass);
}

void NotePromiseConsidered(Pass& pass) {
  FeedbackState& state = pass.Own(&Memory::feedback);
  state.consider_at = 2 * std::max(state.differing, FeedbackState().consider_at);
}

}  // namespace medley::ops::lifecycle
