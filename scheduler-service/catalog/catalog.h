// Prices as published: an immutable snapshot with a revision that grows with every change, and where to wait for one.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/model/planning.h"
#include "scheduler-service/catalog/entry.h"

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
  CatalogSnapshot Get() const;
  // A new revision when `entries` say something else than the current ones (observed_at aside); else nothing changes.
  // True when published.
  bool Publish(std::vector<CatalogEntry> entries, base::WallTime now);
  // The catalog once its revision is above `after`; null when that did not happen within `timeout` or before `stop`.
  CatalogSnapshot WaitNewer(int64_t after, std::stop_token stop, base::nanoseconds timeout);

 private:
  mutable base::Mutex mutex_;
  base::CondVar published_;
  CatalogSnapshot current_ ABSL_GUARDED_BY(mutex_) = std::make_shared<const Catalog>();
};

// Fills in what the request leaves to the catalog: all of its resource types when `resources` is empty, and the price
// of every resource with price 0, by its offering or else by its name. What the catalog does not know, or says is not
// available, keeps price 0. Pure.
void ResolvePrices(const Catalog& catalog, model::PlanRequest& request);

}  // namespace medley::sched
