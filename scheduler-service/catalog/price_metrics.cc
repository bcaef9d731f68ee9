#include "scheduler-service/catalog/price_metrics.h"

#include <map>
#include <string>

namespace medley::sched {
namespace {

constexpr size_t kMaxOfferings = 256;
constexpr char kPrice[] = "medley_price_usd_per_hour";

}  // namespace

void ShowPriceMetrics(const Catalog& catalog, metrics::Registry& metrics, std::vector<metrics::Labels>& shown) {
  for (const metrics::Labels& labels : shown) metrics.RemoveGauge(kPrice, labels);
  shown.clear();
  for (const CatalogEntry& entry : catalog.entries) {
    if (entry.resource_type.empty() && catalog.entries.size() > kMaxOfferings) continue;
    const model::Offering offering = entry.offering.value_or(model::Offering());
    shown.push_back({{"resource_type", entry.resource_type},
                     {"offering", entry.offering ? offering.KeyString() : ""},
                     {"capacity_type", offering.capacity_type},
                     {"zone", offering.zone},
                     {"quality", std::string(ToString(entry.quality))}});
    metrics.GetGauge(kPrice, "Published price of a unit, in USD per hour", shown.back()).Set(entry.UnitPrice());
  }
  std::map<Quality, int> entries = {{Quality::kStatic, 0},
                                    {Quality::kLive, 0},
                                    {Quality::kCached, 0},
                                    {Quality::kFallback, 0},
                                    {Quality::kDefault, 0}};
  for (const CatalogEntry& entry : catalog.entries) ++entries[entry.quality];
  for (const auto& [quality, count] : entries) {
    metrics
        .GetGauge("medley_price_entries", "Prices in the catalog, by quality",
                  {{"quality", std::string(ToString(quality))}})
        .Set(count);
  }
  metrics.GetGauge("medley_catalog_revision", "Revision of the price catalog")
      .Set(static_cast<double>(catalog.revision));
}

}  // namespace medley::sched
