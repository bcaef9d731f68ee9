#include "scheduler-service/catalog/staleness.h"

#include <algorithm>

namespace medley::sched {

bool IsSpot(const CatalogEntry& entry) { return entry.offering && entry.offering->capacity_type == "spot"; }

bool IsOnDemand(const CatalogEntry& entry) {
  return entry.offering && (entry.offering->capacity_type == "on-demand" || entry.offering->capacity_type.empty());
}

Assessment Assess(const StalenessOptions& options, const CatalogEntry& entry, base::nanoseconds ttl,
                  std::optional<double> on_demand, base::WallTime now) {
  if (entry.quality == Quality::kStatic) return {Quality::kStatic, 1};
  const double age = base::ToSeconds(now - entry.observed_at);
  const double limit = base::ToSeconds(ttl);
  if (limit <= 0 || age <= limit) return {Quality::kLive, 1};
  if (age <= options.cached_until * limit || !IsSpot(entry)) return {Quality::kCached, 1};
  double factor = options.fallback_factor;
  // min(on-demand, last x factor), as a factor of the last price.
  if (on_demand && entry.price_per_instance_hour > 0) {
    factor = std::min(factor, *on_demand / entry.price_per_instance_hour);
  }
  return {Quality::kFallback, factor};
}

}  // namespace medley::sched
