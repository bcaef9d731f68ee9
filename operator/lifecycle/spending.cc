#include "operator/lifecycle/spending.h"

#include <algorithm>

#include "operator/lifecycle/pass.h"

namespace medley::ops::lifecycle {
namespace {

double UsdOf(const PaidPod& pod, double usd_per_hour, base::WallTime from, base::WallTime until) {
  const base::WallTime begin = std::max(from, pod.created);
  const base::WallTime end = pod.ended ? std::min(*pod.ended, until) : until;
  return end > begin ? base::ToSeconds(end - begin) / 3600 * usd_per_hour : 0;
}

}  // namespace

double UsdOf(const std::map<std::string, PaidPod>& before, const std::map<std::string, PaidPod>& now,
             base::WallTime from, base::WallTime until) {
  double usd = 0;
  for (const auto& [uid, pod] : now) {
    const auto known = before.find(uid);
    const bool had_price = known != before.end() && known->second.usd_per_hour > 0;
    usd += UsdOf(pod, had_price ? known->second.usd_per_hour : pod.usd_per_hour, from, until);
  }
  for (const auto& [uid, pod] : before) {
    if (!now.contains(uid)) usd += UsdOf(pod, pod.usd_per_hour, from, until);
  }
  return usd;
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
  if (const double usd = UsdOf(state.pods, world.paid_pods, from, world.now); usd > 0) {
    if (!cost) cost.emplace();
    cost->spent_usd += usd;
    cost->counted_until = base::FormatTimeMicro(world.now);
    pass.Publish(AddSpent{usd});
  }
  state.pods = world.paid_pods;
  state.counted_until = world.now;
}

}  // namespace medley::ops::lifecycle
