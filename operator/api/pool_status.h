// The `status` of a ResourcePool. Values; not synchronised.
#pragma once

#include <string>
#include <vector>

#include "operator/api/conditions.h"
#include "operator/api/pool_lifetimes.h"
#include "operator/api/pool_outage.h"

namespace medley::ops {

inline constexpr char kPricedCondition[] = "Priced";
inline constexpr char kAvailableCondition[] = "Available";
inline constexpr char kProfiledCondition[] = "Profiled";

struct PoolUnits {
  int limit = 0;
  int capacity = 0;  // units that fit on the pool's nodes when these are empty
  int used = 0;      // units that the pods of all jobs hold
  int free = 0;      // units that further pods could take now
  bool operator==(const PoolUnits&) const = default;
};

struct PoolStatus {
  int64_t observed_generation = 0;
  Conditions conditions;
  double usd_per_unit_hour = 0;  // 0: not known
  std::string price_time;
  std::string price_source;
  std::string zone;  // of the cheapest available offering; empty: the price holds in every zone
  PoolUnits units;
  // RFC 3339: no offering of the pool is available; empty: one is, or the price is fixed.
  std::string unavailable_since;
  std::vector<PoolOutage> outages;
  PoolLifetimes lifetimes;  // of a pool of spot machines

  static PoolStatus FromJson(const kube::Json& status);
  kube::Json ToJson() const;
  bool operator==(const PoolStatus&) const = default;
};

// The warning for a user who deletes the pool; empty: no job holds units of it. The chart's admission policy gives the
// same (charts/medley/templates/warnings.yaml).
std::string DeletionWarning(const kube::Object& pool);

}  // namespace medley::ops
