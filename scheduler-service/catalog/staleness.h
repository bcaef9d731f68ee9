// What a price is worth that its source has not confirmed for a while. Pure.
//
//   age        0 .. ttl      ttl .. 3 ttl    above 3 ttl
//   spot       live          cached          fallback: min(on-demand, last x 1.25)
//   others     live          cached          cached
//
// A price that was written by a person (Quality::kStatic), or with ttl 0, does not age.
#pragma once

#include <optional>

#include "common/base/clock.h"
#include "scheduler-service/catalog/entry.h"

namespace medley::sched {

struct StalenessOptions {
  double cached_until = 3;  // times the time to live
  double fallback_factor = 1.25;
};

struct Assessment {
  Quality quality = Quality::kLive;
  double factor = 1;  // what the entry's prices are to be multiplied by
};

bool IsSpot(const CatalogEntry& entry);
bool IsOnDemand(const CatalogEntry& entry);

// `entry`: as accepted, with observed_at. `on_demand`: USD per instance and hour of the same machine in the same
// region, where known.
Assessment Assess(const StalenessOptions& options, const CatalogEntry& entry, base::nanoseconds ttl,
                  std::optional<double> on_demand, base::WallTime now);

}  // namespace medley::sched
