// How a job looks for the zone whose price it pays. A value: the operator fills it from the job's plan and from what it
// remembers, and operator/planning/pool_prices.h chooses the zone.
#pragma once

#include <optional>
#include <set>
#include <string>

namespace medley::ops {

// What a job holds of a pool, as its plan record says.
struct HeldUnits {
  std::string zone;  // that its pods are pinned to; empty: they are not
  double usd_per_unit_hour = 0;
};

// How one job looks for the price of a pool.
struct ZoneChoice {
  std::optional<HeldUnits> held;
  bool keep = true;             // false: the cheapest zone, wherever the job holds units
  std::set<std::string> avoid;  // zones in which the job's pods found no node, or in which no plan was found
};

}  // namespace medley::ops
