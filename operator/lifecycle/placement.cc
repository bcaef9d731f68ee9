#include "operator/lifecycle/placement.h"

#include <algorithm>
#include <map>
#include <utility>

#include "common/base/status.h"
#include "operator/builders/pods.h"
#include "operator/lifecycle/pass.h"
#include "operator/lifecycle/planning.h"
#include "operator/lifecycle/pod_state.h"
#include "operator/lifecycle/pods.h"
#include "operator/lifecycle/refusal.h"
#include "operator/lifecycle/running.h"

namespace medley::ops::lifecycle {
namespace {

constexpr base::nanoseconds kLongestPlacementPause =
    std::chrono::minutes(30);  // the first is the schedule window; it doubles

bool IsStuck(const Pass& pass, const std::string& name) {
  const kube::ObjectPtr pod = pass.Pod(name);
  return pod == nullptr ? pass.memory.pods.refused.contains(name) : !pod->deleting() && IsUnschedulable(*pod);
}

// By pool. A pool that does not exist has none.
absl::StatusOr<std::map<std::string, base::nanoseconds>> Windows(Pass& pass) {
  MEDLEY_ASSIGN_OR_RETURN(const PoolsView all, pass.Ask(ReadPools{{}, false, {}}));
  std::map<std::string, base::nanoseconds> windows;
  for (const PoolView& view : all.pools) {
    const bool autoscaled = view.pool.scaling == PoolScaling::kAutoscaled;
    windows[view.pool.name] =
        autoscaled ? base::FromSeconds(view.pool.provision_timeout_seconds) : pass.options.schedule_window;
  }
  return windows;
}

// Requests a pass for the time when the window ends. True: it has ended.
bool HasWaited(Pass& pass, base::SteadyTime since, base::nanoseconds window) {
  const base::nanoseconds waited = pass.world.steady - since;
  if (waited < window) pass.RequeueAfter(window - waited);
  return waited >= window;
}

// `pod` has waited for too long.
absl::Status Release(Pass& pass, const std::string& pod) {
  PlacementState& state = pass.Own(&Memory::placement);
  const kube::ObjectPtr object = pass.Pod(pod);
  const base::nanoseconds waited =
      pass.world.steady - state.unschedulable_since.at(object == nullptr ? pod : object->uid());
  const auto& refused = pass.memory.pods.refused;
  const auto refusal = object == nullptr ? refused.find(pod) : refused.end();
  const base::nanoseconds pause =
      std::min(pass.options.schedule_window * (int64_t{1} << std::min(state.released, 10)), kLongestPlacementPause);
  ++state.released;
  state.after_release = pass.PauseFor(pause);
  state.until_quota_change.reset();
  if (refusal != refused.end() && refusal->second.by_quota) state.until_quota_change = pass.world.quota_changes;
  state.unschedulable_since.clear();
  const double seconds = base::ToSeconds(waited);
  const std::string what = refusal == refused.end() ? fmt::format("Pod {} has found no node for {:.0f} s", pod, seconds)
                                                    : fmt::format("Pod {} has not been admitted for {:.0f} s ({})", pod,
                                                                  seconds, refusal->second.why);
  ForgetRefusals(pass);
  SetCondition(
      pass, kPlannedCondition, ConditionStatus::kFalse, Reason::kUnschedulable,
      fmt::format("{}, and no plan exists without it. The units of the plan are released for other jobs; the job "
                  "is planned again in {:.0f} s.",
                  what, base::ToSeconds(pause)));
  ForgetCoordinator(pass);
  MEDLEY_RETURN_IF_ERROR(DeletePlan(pass));
  ForgetConsidered(pass);
  return DeletePodsOf(pass, WhichPods::kAll);
}

}  // namespace

void ForgetReleases(Pass& pass) { pass.Own(&Memory::placement).released = 0; }

bool PausesAfterRelease(Pass& pass) {
  const PlacementState& state = pass.memory.placement;
  if (state.until_quota_change && *state.until_quota_change != pass.world.quota_changes) return false;
  return pass.Lasts(state.after_release);
}

absl::StatusOr<std::string> StuckPool(Pass& pass) {
  auto& since = pass.Own(&Memory::placement).unschedulable_since;
  std::vector<const MemberSlot*> waiting;
  for (const MemberSlot& slot : pass.memory.stored_plan.record->slots) {
    if (IsStuck(pass, slot.member)) waiting.push_back(&slot);
  }
  if (waiting.empty()) {
    since.clear();
    return std::string();
  }
  MEDLEY_ASSIGN_OR_RETURN(const auto windows, Windows(pass));
  std::map<std::string, base::SteadyTime> now;
  std::string stuck;
  std::map<std::pair<std::string, std::string>, std::vector<kube::ObjectPtr>> missing_nodes;  // pool and zone -> pods
  for (const MemberSlot* slot : waiting) {
    const kube::ObjectPtr pod = pass.Pod(slot->member);
    const std::string id = pod == nullptr ? slot->member : pod->uid();
    const auto before = since.find(id);
    const base::SteadyTime start = before == since.end() ? pass.world.steady : before->second;
    now[id] = start;
    const auto window = windows.find(slot->pool);
    if (HasWaited(pass, start, window == windows.end() ? pass.options.schedule_window : window->second)) {
      stuck = slot->pool;
      if (pod != nullptr) missing_nodes[{slot->pool, slot->zone}].push_back(pod);
    }
  }
  for (auto& [where, pods] : missing_nodes) {
    pass.Publish(ReportNoNode{where.first, where.second, std::move(pods)});
  }
  since = std::move(now);
  return stuck;
}

absl::StatusOr<bool> GiveUpPlacement(Pass& pass, const TrainingJob& job, const std::string& pool) {
  const PlanRecord& record = *pass.memory.stored_plan.record;
  if (IsInForce(pass)) return false;
  const auto slot = std::find_if(record.slots.begin(), record.slots.end(), [&](const MemberSlot& each) {
    return each.pool == pool && IsStuck(pass, each.member);
  });
  if (slot == record.slots.end()) return false;
  const std::string member = slot->member;
  if (pass.observed->generation > 0) {
    return GoBack(
        pass, job, pool,
        fmt::format("Plan {} cannot run: pod {} of pool {} finds no node.", record.plan.generation, member, pool));
  }
  MEDLEY_RETURN_IF_ERROR(Release(pass, member));
  return true;
}

absl::StatusOr<bool> ReleaseIfCoordinatorIsStuck(Pass& pass, const TrainingJob& job) {
  const std::string name = pass.memory.stored_plan.record->CoordinatorPodName(job.name());
  if (!IsStuck(pass, name)) return false;
  const kube::ObjectPtr pod = pass.Pod(name);
  auto& since = pass.Own(&Memory::placement).unschedulable_since;
  const std::string id = pod == nullptr ? name : pod->uid();
  const base::SteadyTime start = since.try_emplace(id, pass.world.steady).first->second;
  MEDLEY_ASSIGN_OR_RETURN(const auto windows, Windows(pass));
  // It may use nodes that an autoscaler brings for the plan's pools.
  base::nanoseconds window = pass.options.schedule_window;
  for (const MemberSlot& slot : pass.memory.stored_plan.record->slots) {
    if (const auto of_pool = windows.find(slot.pool); of_pool != windows.end())
      window = std::max(window, of_pool->second);
  }
  if (!HasWaited(pass, start, window)) return false;
  MEDLEY_RETURN_IF_ERROR(Release(pass, name));
  return true;
}

}  // namespace medley::ops::lifecycle
