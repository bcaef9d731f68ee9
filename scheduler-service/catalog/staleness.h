// Rates prices by the time since their source last confirmed them. Pure.
//
//   age        0 .. ttl      ttl .. 3 ttl    above 3 ttl
//   spot       live          cached          fallback: min(on-demand, last x 1.25)
//   others     live          cached          cached
//
// A price that a person wrote (Quality::kStatic), or one with ttl 0, never becomes stale.
#pragma once

#include <optional>

#include "common/base/clock.h"
#include "scheduler-service/catalog/entry.h"

namespace medley::sched {

struct StalenessOptions {
  double cached_until = 3;        // in multiples of the time to live
  double fallback_factor = 1.25;  // applied to the last price
};

struct Assessment {
  Quality quality = Quality::kLive;
  double factor = 1;  // multiply the entry's prices by this
};

bool IsSpot(const CatalogEntry& entry);
bool IsOnDemand(const CatalogEntry& entry);

// `entry` is an accepted entry, with observed_at set. `on_demand` is the price in USD per instance and hour of the same
// machine in the same region, if known.
Assessment Assess(const StalenessOptions& options, const CatalogEntry& entry, base::nanoseconds ttl,
                  std::optional<double> on_demand, base::WallTime now);

}  // namespace medley::sched
