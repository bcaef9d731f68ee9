// The pools that a job may use, with their prices and units.
#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "operator/api/pool_outage.h"
#include "operator/api/training_job.h"
#include "operator/lifecycle/status.h"
#include "operator/lifecycle/world.h"
#include "operator/records/plan_request.h"
#include "operator/records/zone_choice.h"

namespace medley::ops::lifecycle {

class Pass;

// 15 minutes after the first time, twice as long each further time, at most 4 hours; forgotten after 8 hours without.
struct StuckZone {
  int failures = 0;
  base::SteadyTime avoided_until{};
};
void AvoidZone(StuckZone& zone, base::SteadyTime now);

struct PoolsState {
  static constexpr char kOwner[] = "pools";
  // By pool: zones in which pods found no node or no plan was found since a plan was last in force.
  std::map<std::string, std::set<std::string>> avoided_zones;
  // By pool and zone: pods found no node there. The zone is avoided for a while, however cheap it is.
  std::map<std::string, std::map<std::string, StuckZone>> stuck_zones;
};

// Pods of the pool found no node in the zone.
void AvoidZone(Pass& pass, const std::string& pool, const std::string& zone);
void ForgetAvoidedZones(Pass& pass);  // a plan is in force; zones that are stuck are still avoided

struct UsablePools {
  std::vector<PoolView> pools;               // each with a price
  std::map<std::string, double> prices;      // to plan with: USD per unit-hour, by pool
  std::map<std::string, double> paid;        // what a unit of the running plan costs now
  std::map<std::string, double> cheaper;     // of other zones than those that the job keeps
  std::map<std::string, std::string> zones;  // that pods are pinned to; empty: none

  const PoolView* Find(std::string_view name) const;
  std::vector<PoolOffer> Offers() const;  // they point into `pools`
  std::map<std::string, int> Units() const;
  std::set<std::string> Names() const;
  UsablePools Only(const std::set<std::string>& names) const;
};

struct PoolChoice {
  UsablePools pools;
  std::optional<Unplanned> refusal;   // why the job cannot be planned; `pools` is incomplete then
  std::optional<Unplanned> left_out;  // which pools that the job names cannot be used, and why
};

// In an outage of the pool in the view's zone the job keeps what it holds and gets no others.
void LimitByOutages(const std::vector<PoolOutage>& outages, base::WallTime now, PoolView& view);
// `choice` without the zones of outages, but with the zone in which the job holds units.
ZoneChoice AvoidOutages(ZoneChoice choice, const std::vector<PoolOutage>& outages, int64_t generation,
                        base::WallTime now);

// The zones whose prices a job looks at.
enum class ZonePreference { kKeepHeld, kCheapest };

// Asks for the pools. The job avoids the zones of ReplanningState.
absl::StatusOr<PoolChoice> FindUsablePools(Pass& pass, const TrainingJob& job,
                                           ZonePreference preference = ZonePreference::kKeepHeld);

// Call it when no plan was found in the zones of `pools`, which are avoided from now on. Returns the same pools in
// other zones, at least one of which was not tried yet; nullopt when all zones were tried.
absl::StatusOr<std::optional<UsablePools>> PoolsInOtherZones(Pass& pass, const TrainingJob& job,
                                                             const UsablePools& pools);

}  // namespace medley::ops::lifecycle
