// Prices as published: an immutable snapshot with a revision that grows with every change, and where to wait for one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/model/planning.h"
#include "scheduler-service/catalog/entry.h"
#include "scheduler-service/catalog/history.h"

namespace medley::sched {

struct Catalog {
  int64_t revision = 0;    // 0: nothing published yet
  std::string price_time;  // RFC 3339: when this revision was published
  std::vector<CatalogEntry> entries;
};
using CatalogSnapshot = std::shared_ptr<const Catalog>;

// Thread-safe.
class CatalogStore {
 public:
  explicit CatalogStore(HistoryOptions history = {}) : history_(history) {}
  CatalogSnapshot Get() const;
  // A new revision when `entries` say something else than the current ones (observed_at and effective_at aside); else
  // only those times are taken, under the same revision. True when published.
  bool Publish(std::vector<CatalogEntry> entries, base::WallTime now);
  // After a restart, before the first publication: its revision will be above `revision`.
  void ContinueAfter(int64_t revision);
  // Prices in force of a resource type, an instance type or an offering's key (KeyString), or of all for an empty
  // `type`; with what was published at or after `since`, without `since` no points. Unknown: empty.
  std::vector<PriceSeries> History(const std::string& type, std::optional<base::WallTime> since) const;
  // The catalog once its revision is above `after`; null when that did not happen within `timeout` or before `stop`.
  CatalogSnapshot WaitNewer(int64_t after, std::stop_token stop, base::nanoseconds timeout);

 private:
  mutable base::Mutex mutex_;
  base::CondVar published_;
  CatalogSnapshot current_ ABSL_GUARDED_BY(mutex_) = std::make_shared<const Catalog>();
  int64_t last_revision_ ABSL_GUARDED_BY(mutex_) = 0;
  PriceHistory history_ ABSL_GUARDED_BY(mutex_);
};

// Fills in what the request leaves to the catalog. A request without resources gets every available resource type that
// the catalog defines whole. A resource with price 0 gets the price that common/model/offering.h finds, and its
// offering gets the zone of that price. A resource that the catalog does not know, or for which nothing is available,
// keeps price 0. Pure.
void ResolvePrices(const Catalog& catalog, model::PlanRequest& request);

}  // namespace medley::sched
