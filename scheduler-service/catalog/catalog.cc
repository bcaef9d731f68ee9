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

double FindPrice(const Catalog& catalog, const model::Resource& resource) {
  for (const CatalogEntry& entry : catalog.entries) {
    if (!entry.available) continue;
    if (resource.offering) {
      if (entry.offering && entry.offering->KeyString() == resource.offering->KeyString()) {
        return entry.UnitPrice(resource.offering->units_per_instance);
      }
    } else if (entry.resource_type == resource.name) {
      return entry.UnitPrice();
    }
  }
  return 0;
}

}  // namespace

CatalogSnapshot CatalogStore::Get() const {
  base::MutexLock lock(mutex_);
  return current_;
}

bool CatalogStore::Publish(std::vector<CatalogEntry> entries, base::WallTime now) {
  base::MutexLock lock(mutex_);
  if (current_->revision > 0 && SamePrices(entries, current_->entries)) return false;
  current_ = std::make_shared<const Catalog>(
      Catalog{current_->revision + 1, base::FormatTime(now), std::move(entries)});
  published_.NotifyAll();
  return true;
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
