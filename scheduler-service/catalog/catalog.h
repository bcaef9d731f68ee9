// The published prices: an immutable snapshot whose revision grows with every change, and the store that publishes it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/model/forward.h"
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
  // Publishes a new revision and returns true if `entries` differ from the current ones, ignoring observed_at and
  // effective_at. Otherwise updates only these times and keeps the revision.
  bool Publish(std::vector<CatalogEntry> entries, base::WallTime now);
  // Makes the next published revision greater than `revision`. Call it after a restart, before the first publication.
  void ContinueAfter(int64_t revision);
  // Current prices and their history. `type` is a resource type, an instance type or an offering's key (KeyString);
  // empty means all. The points are those published at or after `since`; without `since` there are none. Empty for an
  // unknown type.
  std::vector<PriceSeries> History(const std::string& type, std::optional<base::WallTime> since) const;
  // Waits for a revision greater than `after` and returns it; null after `timeout` or when `stop` is requested.
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
