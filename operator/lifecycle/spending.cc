#include "operator/lifecycle/spending.h"

#include <algorithm>

#include "operator/lifecycle/pass.h"

namespace medley::ops::lifecycle {
namespace {

using Use = goodput::Paid::Use;

// Adds the pod's pieces of time, each with one use.
void AddPod(const PaidPod& pod, double usd_per_hour, const PaidTime& time, std::vector<goodput::Paid>& paid) {
  const base::WallTime begin = std::max(time.from, pod.created);
  const base::WallTime end = pod.ended ? std::min(*pod.ended, time.until) : time.until;
  if (end <= begin || (usd_per_hour <= 0 && !pod.held)) return;
  const base::WallTime node_at = std::clamp(pod.node_at.value_or(end), begin, end);
  const base::WallTime idle_at = std::clamp(time.idle_since.value_or(end), node_at, end);
  const auto add = [&](base::WallTime from, base::WallTime until, Use use) {
    const double seconds = base::ToSeconds(until - from);
    if (seconds > 0) paid.push_back({pod.pool, seconds * pod.part, seconds / 3600 * usd_per_hour, use, pod.part});
  };
  add(begin, node_at, Use::kWaiting);
  add(node_at, idle_at, time.waits ? Use::kWaiting : Use::kHeld);
  add(idle_at, end, Use::kIdle);
}

// When the job stopped to need its units. While it is suspended, that is when it was asked to.
std::optional<base::WallTime> IdleSince(const JobStatus& status) {
  std::string since = status.finished() ? status.completion_time : "";
  if (const Condition* suspended = status.conditions.Find(kSuspendedCondition);
      since.empty() && suspended != nullptr && suspended->status == ConditionStatus::kTrue) {
    since = suspended->last_transition_time;
  }
  const auto time = base::ParseTime(since);
  return time.ok() ? std::optional(*time) : std::nullopt;
}

// No generation is in force yet, and a pod has no node: the others are paid, and wait for it.
bool WaitsForNode(const Pass& pass) {
  if (pass.report.goodput && !pass.report.goodput->bill.account.empty()) return false;
  return std::ranges::any_of(pass.world.pods,
                             [](const auto& at) { return at.second->String("/spec/nodeName").empty(); });
}

void CountBill(const std::vector<goodput::Paid>& paid, const Observation* observed, JobStatus& status) {
  if (!status.goodput) status.goodput.emplace();
  goodput::Bill& bill = status.goodput->bill;
  std::vector<goodput::Paid> bounded = paid;
  for (goodput::Paid& one : bounded) {
    const bool room = bill.pools.size() < kMostBilledPools || bill.pools.contains(one.pool);
    if (!room) one.pool = kOtherPools;
    bill.pools.try_emplace(one.pool);
  }
  goodput::Count(bounded, observed == nullptr ? nullptr : &observed->units, bill);
}

}  // namespace

std::vector<goodput::Paid> PaidSince(const std::map<std::string, PaidPod>& before,
                                     const std::map<std::string, PaidPod>& now, const PaidTime& time) {
  std::vector<goodput::Paid> paid;
  for (const auto& [uid, pod] : now) {
    const auto known = before.find(uid);
    const bool had_price = known != before.end() && known->second.usd_per_hour > 0;
    AddPod(pod, had_price ? known->second.usd_per_hour : pod.usd_per_hour, time, paid);
  }
  for (const auto& [uid, pod] : before) {
    if (!now.contains(uid)) AddPod(pod, pod.usd_per_hour, time, paid);
  }
  return paid;
}

void CountSpending(Pass& pass) {
  SpendingState& state = pass.Own(&Memory::spending);
  std::optional<CostStatus>& cost = pass.report.cost;
  const World& world = pass.world;
  if (!world.prices_are_known && !state.counted_until) return;  // a pass that knows them counts this time as well
  base::WallTime from{};                                        // before every pod
  if (state.counted_until) {
    from = *state.counted_until;
  } else if (cost && !cost->counted_until.empty()) {
    from = base::ParseTime(cost->counted_until).value_or(world.now);
  }
  const PaidTime time{from, world.now, IdleSince(pass.report), WaitsForNode(pass)};
  const std::vector<goodput::Paid> paid = PaidSince(state.pods, world.paid_pods, time);
  double usd = 0;
  for (const goodput::Paid& one : paid) usd += one.usd;
  if (usd > 0) {
    if (!cost) cost.emplace();
    cost->spent_usd += usd;
    pass.Publish(AddSpent{usd});
  }
  if (!paid.empty()) {
    if (!cost) cost.emplace();
    cost->counted_until = base::FormatTimeMicro(world.now);
  }
  if (!paid.empty() || pass.report.goodput) CountBill(paid, world.observed.get(), pass.report);
  state.pods = world.paid_pods;
  state.counted_until = world.now;
}

}  // namespace medley::ops::lifecycle
