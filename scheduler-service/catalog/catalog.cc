#include "scheduler-service/catalog/catalog.h"

#include <algorithm>

namespace medley::sched {
namespace {

bool SamePrices(const std::vector<CatalogEntry>& a, const std::vector<CatalogEntry>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](CatalogEntry x, const CatalogEntry& y) {
    x.observed_at = y.observed_at;
    x.effective_at = y.effective_at;
    return x == y;
  });
}

bool SameMachine(const model::Offering& a, const model::Offering& b) {
  return a.instance_type == b.instance_type && a.region == b.region && a.provider == b.provider;
}

// USD per unit and hour of `wanted` with its capacity type, by zone, region or the cheapest zone; 0: none.
double FindOffering(const Catalog& catalog, const model::Offering& wanted, const std::string& capacity_type) {
  double regional = 0;
  double cheapest = 0;
  for (const CatalogEntry& entry : catalog.entries) {
    if (!entry.offering || !SameMachine(*entry.offering, wanted)) continue;
    if (entry.offering->capacity_type != capacity_type || !entry.available) continue;
    // A resource type's own unit price may be a share of the instance's only.
    const bool whole = !entry.resource_type.empty() && entry.price_per_instance_hour > 0;
    const double price =
        whole ? entry.price_per_instance_hour / wanted.units_per_instance : entry.UnitPrice(wanted.units_per_instance);
    if (!(price > 0)) continue;
    if (entry.offering->zone == wanted.zone) return price;
    if (entry.offering->zone.empty()) regional = price;
    if (cheapest == 0 || price < cheapest) cheapest = price;
  }
  if (regional > 0) return regional;
  return wanted.zone.empty() ? cheapest : 0;
}

// Known, whether to be had or not.
bool HasSpot(const Catalog& catalog, const model::Offering& wanted) {
  return std::any_of(catalog.entries.begin(), catalog.entries.end(), [&](const CatalogEntry& entry) {
    return entry.offering && SameMachine(*entry.offering, wanted) && entry.offering->capacity_type == "spot";
  });
}

double FindPrice(const Catalog& catalog, const model::Resource& resource) {
  if (resource.offering) {
    const model::Offering& wanted = *resource.offering;
    const double price = FindOffering(catalog, wanted, wanted.capacity_type);
    if (price > 0 || wanted.capacity_type != "spot" || HasSpot(catalog, wanted)) return price;
    return FindOffering(catalog, wanted, "on-demand");
  }
  for (const CatalogEntry& entry : catalog.entries) {
    if (entry.resource_type == resource.name && entry.available) return entry.UnitPrice();
  }
  return 0;
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
  for (model::Resource& resource : request.resources) {
    if (resource.price_per_unit_hour == 0) resource.price_per_unit_hour = FindPrice(catalog, resource);
  }
}

}  // namespace medley::sched
