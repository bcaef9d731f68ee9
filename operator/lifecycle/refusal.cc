#include "operator/lifecycle/refusal.h"

#include <algorithm>

#include "operator/lifecycle/pass.h"
#include "operator/lifecycle/planning.h"

namespace medley::ops::lifecycle {
namespace {

constexpr base::nanoseconds kFirstTime = std::chrono::minutes(10);  // doubles each time
constexpr base::nanoseconds kLongestTime = std::chrono::hours(6);

std::string PoolOf(const PlanRecord& record, const std::string& member) {
  const auto slot = std::find_if(record.slots.begin(), record.slots.end(),
                                 [&](const MemberSlot& each) { return each.member == member; });
  return slot == record.slots.end() ? "" : slot->pool;
}

// Returns for how long.
base::nanoseconds SetPoolAside(Pass& pass, const std::string& pool) {
  RefusalState::SetAside& aside = pass.memory.refusal.pools[pool];
  const base::nanoseconds time = std::min(kFirstTime * (int64_t{1} << std::min(aside.times, 10)), kLongestTime);
  ++aside.times;
  aside.until = pass.world.steady + time;
  pass.RequeueAfter(time);
  auto& considered = pass.memory.replanning.considered;
  if (considered) {  // so that the pool counts as new when its time has come
    considered->units.erase(pool);
    considered->prices.erase(pool);
  }
  return time;
}

}  // namespace

absl::StatusOr<bool> LeaveRefusedPlan(Pass& pass, const TrainingJob& job) {
  const auto& refused = pass.observed->refused;
  const PlanRecord& record = *pass.memory.planning.record;
  if (!refused || refused->generation != record.plan.generation || record.fallback == nullptr) return false;
  const std::string pool = PoolOf(record, refused->member);
  const base::nanoseconds time = SetPoolAside(pass, pool);
  const std::string why = fmt::format(
      "Plan {} cannot run: pod {} of pool {} reports: {}. The job keeps the plan in force and takes "
      "no more units of the pool for {:.0f} min.",
      refused->generation, refused->member, pool, refused->message, base::ToSeconds(time) / 60);
  PlanRecord back = *record.fallback;
  back.plan.generation = NextGeneration(pass);
  back.reason = "PlanRefused";
  back.policy = record.policy;
  back.coordinator_uid = record.coordinator_uid;
  back.coordinator_restarts = record.coordinator_restarts;
  MEDLEY_RETURN_IF_ERROR(StorePlan(pass, job, back));
  pass.Warning("PlanRefused", why);
  FillPlanStatus(pass);
  SetPlanned(pass);
  SetCondition(pass, kRescalingCondition, ConditionStatus::kTrue, "PlanRefused", why);
  pass.RequeueAfter(base::nanoseconds(1));  // the next pass sends the plan
  return true;
}

bool IsSetAside(const Pass& pass, const std::string& pool) {
  const auto aside = pass.memory.refusal.pools.find(pool);
  return aside != pass.memory.refusal.pools.end() && pass.world.steady < aside->second.until;
}

}  // namespace medley::ops::lifecycle
