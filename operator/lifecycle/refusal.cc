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

base::nanoseconds PauseOf(const Pass& pass, const std::string& pool) {
  const auto aside = pass.memory.refusal.pools.find(pool);
  const int times = aside == pass.memory.refusal.pools.end() ? 0 : aside->second.times;
  return std::min(kFirstTime * (int64_t{1} << std::min(times, 10)), kLongestTime);
}

void SetPoolAside(Pass& pass, const std::string& pool) {
  const base::nanoseconds pause = PauseOf(pass, pool);
  RefusalState::SetAside& aside = pass.Own(&Memory::refusal).pools[pool];
  ++aside.times;
  aside.until = pass.world.steady + pause;
  pass.RequeueAfter(pause);
  const auto& slots = pass.memory.stored_plan.record->slots;
  const auto held = std::count_if(slots.begin(), slots.end(), [&](const auto& slot) { return slot.pool == pool; });
  // So that the pool counts as grown when the pause is over.
  NoteConsideredUnits(pass, pool, static_cast<int>(held));
}

}  // namespace

bool IsRefused(const Pass& pass) {
  return pass.observed != nullptr && pass.observed->refused &&
         pass.observed->refused->generation == pass.memory.stored_plan.record->plan.generation;
}

absl::StatusOr<bool> GoBack(Pass& pass, const TrainingJob& job, const std::string& pool, const std::string& problem) {
  const PlanRecord record = *pass.memory.stored_plan.record;
  const std::string why =
      fmt::format("{} The job keeps the plan in force and takes no more units of the pool for {:.0f} min.", problem,
                  base::ToSeconds(PauseOf(pass, pool)) / 60);
  // The job can go back only to a plan whose members run; else Replan finds another one.
  if (record.fallback == nullptr || record.fallback->plan.generation != pass.observed->plan_generation) {
    if (IsSetAside(pass, pool)) return false;
    SetPoolAside(pass, pool);
    pass.Warning(Reason::kPlanRefused, why);
    return false;
  }
  PlanRecord back = *record.fallback;
  back.plan.generation = NextGeneration(pass);
  back.reason = Reason::kPlanRefused;
  back.policy = record.policy;
  back.fallback = record.fallback;
  back.KeepCoordinatorOf(record);
  MEDLEY_RETURN_IF_ERROR(StorePlan(pass, job, back));
  SetPoolAside(pass, pool);
  pass.Warning(Reason::kPlanRefused, why);
  FillPlanStatus(pass);
  SetCondition(pass, kRescalingCondition, ConditionStatus::kTrue, Reason::kPlanRefused, why);
  pass.RequeueAfter(base::nanoseconds(1));  // the next pass sends the plan
  return true;
}

absl::StatusOr<bool> LeaveRefusedPlan(Pass& pass, const TrainingJob& job) {
  if (!IsRefused(pass)) return false;
  const RefusedPlan& refused = *pass.observed->refused;
  const std::string pool = PoolOf(*pass.memory.stored_plan.record, refused.member);
  return GoBack(pass, job, pool,
                fmt::format("Plan {} cannot run: pod {} of pool {} reports: {}.", refused.generation, refused.member,
                            pool, refused.message));
}

bool IsSetAside(const Pass& pass, const std::string& pool) {
  const auto aside = pass.memory.refusal.pools.find(pool);
  return aside != pass.memory.refusal.pools.end() && pass.world.steady < aside->second.until;
}

}  // namespace medley::ops::lifecycle
