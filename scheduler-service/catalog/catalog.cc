#include "scheduler-service/catalog/catalog.h"

#include <algorithm>

#include "common/model/offering.h"
#include "common/model/planning.h"

namespace medley::sched {
namespace {

bool SamePrices(const std::vector<CatalogEntry>& a, const std::vector<CatalogEntry>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](CatalogEntry x, const CatalogEntry& y) {
    x.observed_at = y.observed_at;
    x.effective_at = y.effective_at;
    return x == y;
  });
}

// What the matching rule needs of each entry.
std::vector<model::CatalogPrice> PricesOf(const Catalog& catalog) {
  std::vector<model::CatalogPrice> prices;
  prices.reserve(catalog.entries.size());
  for (const CatalogEntry& entry : catalog.entries) {
    prices.push_back({entry.offering ? &*entry.offering : nullptr, entry.resource_type, entry.price_per_instance_hour,
                      entry.UnitPrice(), entry.available});
  }
  return prices;
}

void SetPrice(const std::vector<model::CatalogPrice>& prices, model::Resource& resource) {
  const auto match = model::MatchPrice(prices, {resource.offering ? &*resource.offering : nullptr, resource.name, {}});
  if (!match || !match->available) return;
  resource.price_per_unit_hour = match->usd_per_unit_hour;
  if (resource.offering) resource.offering->zone = match->zone;
}

bool Concerns(const CatalogEntry& entry, const std::string& type) {
  if (type.empty() || entry.resource_type == type) return true;
  return entry.resource_type.empty() && entry.offering &&
         (entry.offering->instance_type == type || entry.offering->KeyString() == type);
}

}  // namespace

CatalogSnapshot CatalogStore::Get() const {
  base::MutexLock lock(mutex_);
  return current_;
}

bool CatalogStore::Publish(std::vector<CatalogEntry> entries, base::WallTime now) {
  base::MutexLock lock(mutex_);
  if (current_->revision > 0 && SamePrices(entries, current_->entries)) {
    current_ = std::make_shared<const Catalog>(Catalog{current_->revision, current_->price_time, std::move(entries)});
    return false;
  }
  history_.Record(entries, ++last_revision_, now);
  current_ = std::make_shared<const Catalog>(Catalog{last_revision_, base::FormatTime(now), std::move(entries)});
  published_.NotifyAll();
  return true;
}

void CatalogStore::ContinueAfter(int64_t revision) {
  base::MutexLock lock(mutex_);
  last_revision_ = std::max(last_revision_, revision);
}

std::vector<PriceSeries> CatalogStore::History(const std::string& type, std::optional<base::WallTime> since) const {
  base::MutexLock lock(mutex_);
  std::vector<PriceSeries> out;
  for (const CatalogEntry& entry : current_->entries) {
    if (Concerns(entry, type)) out.push_back(history_.Series(entry, since));
  }
  return out;
}

CatalogSnapshot CatalogStore::WaitNewer(int64_t after, std::stop_token stop, base::nanoseconds timeout) {
  base::MutexLock lock(mutex_);
  const bool newer = published_.WaitFor(mutex_, std::move(stop), timeout,
                                        [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return current_->revision > after; });
  return newer ? current_ : nullptr;
}

void ResolvePrices(const Catalog& catalog, model::PlanRequest& request) {
  if (request.resources.empty()) {
    for (const CatalogEntry& entry : catalog.entries) {
      if (entry.resource_type.empty() || entry.limit <= 0 || !entry.available) continue;
      model::Resource resource;
      resource.name = entry.resource_type;
      resource.cls = entry.cls == "GPU" ? model::ResourceClass::kGpu : model::ResourceClass::kCpu;
      resource.limit = entry.limit;
      resource.memory_bytes = entry.memory_bytes;
      resource.hardware = entry.hardware;
      resource.price_per_unit_hour = entry.UnitPrice();
      request.resources.push_back(std::move(resource));
    }
    return;
  }
  const std::vector<model::CatalogPrice> prices = PricesOf(catalog);
  for (model::Resource& resource : request.resources) {
    if (resource.price_per_unit_hour == 0) SetPrice(prices, resource);
  }
}

}  // namespace medley::sched
