#include "operator/capacity/unit_losses.h"

namespace medley::ops {

PoolLifetimes UnitLosses::See(const kube::Object& pool, const std::vector<Unit>& units, base::WallTime now) {
  base::MutexLock lock(mutex_);
  const auto [known, is_new] = pools_.try_emplace(pool.key().name);
  Pool& entry = known->second;
  const bool first = is_new || entry.uid != pool.uid();
  if (first) entry = {pool.uid(), PoolLifetimes::FromJson(pool.At("/status/interruptions")), {}, {}};
  entry.lifetimes.NoteUnits(static_cast<int>(entry.live.size()), now);
  std::set<std::string> live, lost;
  for (const Unit& unit : units) {
    (unit.lost ? lost : live).insert(unit.uid);
    if (first) continue;
    const bool was_lost = entry.lost.contains(unit.uid);
    if (!was_lost && !entry.live.contains(unit.uid)) entry.lifetimes.NoteStart(unit.start_seconds);
    if (unit.lost && !was_lost) entry.lifetimes.NoteLosses(1);
  }
  entry.live = std::move(live);
  entry.lost = std::move(lost);
  return entry.lifetimes;
}

void UnitLosses::Forget(const std::string& pool) {
  base::MutexLock lock(mutex_);
  pools_.erase(pool);
}

}  // namespace medley::ops
