// Polls the feeds and publishes the accepted prices to a CatalogStore.
//
//   Poller poller(options, std::move(feeds), store, metrics, clock);
//   poller.Start();   // returns after authoritative feeds (files) were read; one thread per feed, and one for ticks
//   ...
//   poller.Stop();
//
// A feed is polled every period, with jitter. After an error the poller backs off, from 1 s to 15 min, and respects
// Retry-After; it polls authoritative feeds every period even after an error. A feed that hangs does not delay the
// others. The last good prices are saved on disk and restored at the start. Planners read the CatalogStore and never
// wait for the poller.
//
// Metrics: medley_price_fetch_total{source,result}, medley_price_rejected_total{source,reason},
// medley_price_publish_total, medley_price_age_seconds{source}, medley_price_confirmed_timestamp_seconds{source},
// medley_price_entries{quality}, medley_price_usd_per_hour{resource_type,offering,capacity_type,zone,quality},
// medley_catalog_revision.
//
// Call Start, Stop and Step from one thread. Tests call Step with a FakeClock instead of Start.
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
  std::filesystem::path last_good;                          // file for the last good prices; empty: they are not saved
  base::nanoseconds tick = std::chrono::seconds(5);         // how often staleness and hysteresis are re-evaluated
  base::nanoseconds save_every = std::chrono::minutes(10);  // even without a change, so that ages survive a restart
  double jitter = 0.1;                                      // as a share of the period
  base::Backoff::Options backoff{std::chrono::seconds(1), std::chrono::minutes(15), 2, 0.2};
  base::nanoseconds max_retry_after = std::chrono::hours(6);
  uint64_t seed = 1;
};

// A feed with its configuration, which overrides the feed's traits.
struct ConfiguredFeed {
  std::unique_ptr<Feed> feed;
  int priority = 0;
  std::optional<base::nanoseconds> period;
  std::optional<base::nanoseconds> ttl;
  std::optional<base::nanoseconds> on_demand_ttl;
  std::optional<bool> authoritative;
  std::string configuration;  // see SourceOptions
};

class Poller {
 public:
  // Restores the last good prices from disk and publishes them.
  Poller(PollerOptions options, std::vector<ConfiguredFeed> feeds, CatalogStore& store, metrics::Registry& metrics,
         base::Clock& clock);
  ~Poller();

  void Start();
  void Stop();  // idempotent; saves the last good prices before it returns

  // Polls every feed that is due, publishes and saves. Returns the time of the next step: when the next feed is due, at
  // most one tick from now.
  base::SteadyTime Step(std::stop_token stop);

 private:
  struct FeedState;

  void Poll(FeedState& state, std::stop_token stop);
  void Apply(FeedState& state, const FetchResult& result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Schedule(FeedState& state, const FetchResult& result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ApplySnapshot(FeedState& state, const Snapshot& snapshot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ApplyError(FeedState& state, const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Publish() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void UpdatePriceMetrics() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void UpdateAgeMetrics(base::WallTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
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
  std::vector<std::unique_ptr<FeedState>> states_;  // constant after construction
  std::vector<std::jthread> threads_;
};

}  // namespace medley::sched
