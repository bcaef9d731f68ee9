// Asks the feeds when it is time, and publishes what is believed.
//
//   Poller poller(options, std::move(feeds), store, metrics, clock);
//   poller.Start();   // local files have been read when it returns; one thread a feed, and one for the passing of time
//   ...
//   poller.Stop();
//
// A feed is asked every period (with jitter); after an error later and later, 1 s to 15 min, and not before
// Retry-After; an authoritative feed every period whatever happened. A feed that hangs holds up nobody. The last good
// prices are kept on disk and taken back at the start. Never in the path of a decision: planners read the
// CatalogStore.
//
// Metrics: medley_price_fetch_total{source,result}, _rejected_total{source,reason}, _publish_total,
// _age_seconds{source}, _confirmed_timestamp_seconds{source}, _entries{quality},
// _usd_per_hour{resource_type,offering,capacity_type,zone,quality}, medley_catalog_revision.
//
// Start, Stop and Step belong to one thread. Tests drive Step with a FakeClock instead of Start.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "common/base/backoff.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/metrics/metrics.h"
#include "scheduler-service/catalog/book.h"
#include "scheduler-service/catalog/catalog.h"
#include "scheduler-service/catalog/feed.h"

namespace medley::sched {

struct PollerOptions {
  BookOptions book;
  std::filesystem::path last_good;                          // empty: not kept
  base::nanoseconds tick = std::chrono::seconds(5);         // how soon the passing of time alone shows
  base::nanoseconds save_every = std::chrono::minutes(10);  // also without a change, so that ages survive a restart
  double jitter = 0.1;                                      // share of a period
  base::Backoff::Options backoff{std::chrono::seconds(1), std::chrono::minutes(15), 2, 0.2};
  base::nanoseconds max_retry_after = std::chrono::hours(6);
  uint64_t seed = 1;
};

// A feed with what the configuration says of it in place of its traits.
struct FeedSlot {
  std::unique_ptr<Feed> feed;
  int priority = 0;
  std::optional<base::nanoseconds> period;
  std::optional<base::nanoseconds> ttl;
  std::optional<base::nanoseconds> on_demand_ttl;
  std::optional<bool> authoritative;
};

class Poller {
 public:
  // Takes the last good prices from disk and publishes them.
  Poller(PollerOptions options, std::vector<FeedSlot> feeds, CatalogStore& store, metrics::Registry& metrics,
         base::Clock& clock);
  ~Poller();

  void Start();
  void Stop();  // idempotent; the last good prices are on disk when it returns

  // Asks every feed whose time has come, publishes, saves. Returns when the next feed is due, at most a tick away.
  base::SteadyTime Step(std::stop_token stop);

 private:
  struct Slot;

  void Ask(Slot& slot, std::stop_token stop);
  void Apply(Slot& slot, const FetchResult& result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Schedule(Slot& slot, const FetchResult& result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ApplySnapshot(Slot& slot, const Snapshot& snapshot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ApplyError(Slot& slot, const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Publish() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ShowPrices() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ShowAges(base::WallTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Restore();
  void Save(bool always);
  void CountRejected(const std::string& source, const std::string& reason, int times);
  metrics::Counter& FetchCounter(const std::string& source, const std::string& result);
  metrics::Counter& PublishCounter();

  const PollerOptions options_;
  CatalogStore& store_;
  metrics::Registry& metrics_;
  base::Clock& clock_;
  base::Mutex mutex_;
  PriceBook book_ ABSL_GUARDED_BY(mutex_);
  std::vector<metrics::Labels> shown_ ABSL_GUARDED_BY(mutex_);
  bool unsaved_ ABSL_GUARDED_BY(mutex_) = false;
  base::SteadyTime saved_at_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Slot>> slots_;  // constant after construction
  std::vector<std::jthread> threads_;
};

}  // namespace medley::sched
