#include "operator/lifecycle/profiling.h"

#include <algorithm>

#include "common/base/status.h"
#include "operator/lifecycle/pass.h"
#include "operator/records/plan_request.h"
#include "operator/records/profile_store.h"

namespace medley::ops::lifecycle {
namespace {

using Stage = ProfileProgress::Stage;

std::string Bounds(const UsablePools& pools) {
  std::string bounds;
  for (const PoolView& view : pools.pools) bounds += (bounds.empty() ? "" : "; ") + view.bound;
  return bounds;
}

std::string Join(const std::vector<std::string>& parts, const char* separator) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : separator) + part;
  return text;
}

// For this job's own pod template: those of other jobs may be wrong where this one is right.
bool IsHopeless(const ProfileProgress& progress, const std::string& uid, int backoff_limit) {
  const auto failures = progress.failures.find(uid);
  return progress.refused.contains(uid) || (failures != progress.failures.end() && failures->second > backoff_limit);
}

// The causes first, each once, however many pools report it; then where they were seen.
std::string JoinFailures(const std::vector<const ProfileProgress*>& failed) {
  std::vector<std::string> causes;
  std::vector<std::string> places;
  const auto add = [](std::vector<std::string>& parts, const std::string& part) {
    if (!part.empty() && std::find(parts.begin(), parts.end(), part) == parts.end()) parts.push_back(part);
  };
  for (const ProfileProgress* progress : failed) {
    add(causes, progress->cause);
    add(places, progress->cause.empty() ? progress->message : progress->public_message);
  }
  causes.insert(causes.end(), places.begin(), places.end());
  return Join(causes, " ");
}

// For a job none of whose pools has a profile.
void Explain(const TrainingJob& job, const UsablePools& pools, const std::map<std::string, ProfileProgress>& open,
             ProfiledPools& profiled) {
  std::vector<std::string> running;
  std::vector<const ProfileProgress*> failed;
  size_t hopeless = 0;
  for (const PoolView& view : pools.pools) {
    const auto found = open.find(view.pool.name);
    if (found == open.end()) continue;
    const ProfileProgress& progress = found->second;
    if (progress.stage == Stage::kRunning) running.push_back(view.pool.name);
    const bool has_failed = progress.stage == Stage::kFailed || progress.stage == Stage::kRefused;
    if (has_failed || !progress.failures.empty() || progress.reason == Reason::kFailedCreatePod ||
        progress.reason == Reason::kPodCannotStart) {
      failed.push_back(&progress);
    }
    const bool never = IsHopeless(progress, job.object.uid(), job.run_policy.backoff_limit);
    hopeless += never ? 1 : 0;
  }
  const std::string failures = JoinFailures(failed);
  if (hopeless == pools.pools.size()) {
    profiled.hopeless = failures + (pools.pools.size() == 1 ? "" : " The layers could not be measured on any pool.");
    return;
  }
  const bool have_units =
      std::any_of(pools.pools.begin(), pools.pools.end(), [](const auto& view) { return view.units > 0; });
  if (!have_units && running.empty() && failed.empty()) {
    profiled.why = Unplanned(ConditionStatus::kFalse, Reason::kInfeasible,
                             "no pool has a free unit to measure the layers on: needed 1, free 0; add nodes, raise a "
                             "pool's spec.limit or the namespace's ResourceQuota; bounded by: " +
                                 Bounds(pools));
    return;
  }
  std::string sentence = "The job waits until its layers are measured";
  if (!running.empty()) sentence += ", now on: " + Join(running, ", ");
  profiled.why = Unplanned(ConditionStatus::kUnknown, Reason::kProfiling,
                           (failures.empty() ? "" : failures + " ") + sentence + ".");
}

// Errors: another client has changed the profile, or it is unreadable; it is measured again.
absl::StatusOr<model::Profile> BelievedProfile(const Pass& pass, const kube::Object& map, const std::string& pool) {
  MEDLEY_RETURN_IF_ERROR(pass.options.record_keys.Check(RecordKind::kProfile, "", map));
  return ParseProfile(map.String("/data/profile.json"), pool);
}

}  // namespace

absl::StatusOr<std::map<std::string, model::Profile>> StoredProfiles(Pass& pass,
                                                                     const std::vector<std::string>& pools) {
  MEDLEY_ASSIGN_OR_RETURN(const ProfilesView view, pass.Ask(ReadProfiles{pass.profile_hash, pools}));
  std::map<std::string, model::Profile> profiles;
  for (const auto& [pool, map] : view.stored) {
    auto profile = BelievedProfile(pass, *map, pool);
    if (profile.ok()) profiles.emplace(pool, *std::move(profile));
  }
  return profiles;
}

absl::StatusOr<ProfiledPools> FindProfiledPools(Pass& pass, const TrainingJob& job, const UsablePools& pools) {
  std::vector<std::string> names;
  for (const PoolView& view : pools.pools) names.push_back(view.pool.name);
  MEDLEY_ASSIGN_OR_RETURN(const ProfilesView view, pass.Ask(ReadProfiles{pass.profile_hash, names}));
  ProfiledPools profiled;
  std::vector<model::Profile> found;
  std::set<std::string> usable;
  for (const std::string& name : names) {
    const auto map = view.stored.find(name);
    auto profile = map == view.stored.end() ? absl::StatusOr<model::Profile>(base::NotFound("not measured"))
                                            : BelievedProfile(pass, *map->second, name);
    if (profile.ok()) {
      usable.insert(name);
      found.push_back(*std::move(profile));
      continue;
    }
    const auto progress = view.open.find(name);
    // Nothing is known yet right after the job or the operator has started.
    const bool expected = progress == view.open.end() || progress->second.stage == Stage::kRunning;
    if (expected) profiled.measuring.push_back(name);
  }
  if (found.empty()) {
    Explain(job, pools, view.open, profiled);
    return profiled;
  }
  if (const auto& record = pass.memory.stored_plan.record) {
    for (const MemberSlot& slot : record->slots) {
      if (slot.role == Role::kServer) usable.insert(slot.pool);
    }
  }
  profiled.pools = pools.Only(usable);
  if (ServerPool(job, profiled.pools.Offers()).empty() || !job.server_pool.empty()) {
    usable.insert(ServerPool(job, pools.Offers()));
    profiled.pools = pools.Only(usable);
  }
  MEDLEY_ASSIGN_OR_RETURN(profiled.profile, MergeProfiles(found));
  return profiled;
}

bool MustLookForPlan(Pass& pass, const TrainingJob& job, const ProfiledPools& profiled) {
  const ProfilingState& state = pass.memory.profiling;
  const bool same = state.feasible_since && state.planned_with == profiled.pools.Names();
  return !same || !MustWaitForProfiles(pass, job, profiled);
}

void RememberFirstPlan(Pass& pass, const ProfiledPools& profiled, bool feasible) {
  ProfilingState& state = pass.Own(&Memory::profiling);
  state.planned_with = profiled.pools.Names();
  if (!feasible) state.feasible_since.reset();
  if (feasible && !state.feasible_since) state.feasible_since = pass.world.steady;
}

void ForgetProfiling(Pass& pass) { pass.Own(&Memory::profiling) = ProfilingState(); }

bool MustWaitForProfiles(Pass& pass, const TrainingJob& job, const ProfiledPools& profiled) {
  const ProfilingState& state = pass.memory.profiling;
  if (profiled.measuring.empty()) return false;
  const base::SteadyTime since = state.feasible_since.value_or(pass.world.steady);
  const base::nanoseconds left = since + base::FromSeconds(job.profiling_wait_seconds) - pass.world.steady;
  if (left > base::nanoseconds(0)) pass.RequeueAfter(left);
  return left > base::nanoseconds(0);
}

Unplanned WaitingForProfiles(const ProfiledPools& profiled, bool feasible) {
  const std::string start = feasible ? "A plan was found; the job still waits, for spec.profiling.wait at most,"
                                     : "No plan meets the goal on the pools measured so far; the job waits";
  return {ConditionStatus::kUnknown, Reason::kProfiling,
          start + " until the layers are measured on: " + Join(profiled.measuring, ", ") + "."};
}

}  // namespace medley::ops::lifecycle
