// All accepted prices and all published prices. The pure part of the poller: it takes the answers of the feeds and
// returns the entries to publish.
//
//   answer -> Accept (per source) -> Merge (staleness, priority, shapes) -> overrides -> hysteresis -> resource types
//
// Not thread-safe.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "scheduler-service/catalog/acceptance.h"
#include "scheduler-service/catalog/hysteresis.h"
#include "scheduler-service/catalog/merge.h"
#include "scheduler-service/catalog/resources.h"
#include "scheduler-service/catalog/selector.h"

namespace medley::sched {

struct BookOptions {
  AcceptanceOptions acceptance;  // `authoritative` is set from SourceOptions
  StalenessOptions staleness;
  HysteresisOptions hysteresis;
  MachineShapes machines;
  std::vector<Override> overrides;
  std::vector<ResourceRule> resources;
};

struct SourceOptions {
  std::string name;
  int priority = 0;
  base::nanoseconds ttl{};
  base::nanoseconds on_demand_ttl{};
  bool authoritative = false;
  std::string configuration;  // hash of the feed's part of the configuration
};

struct PublishedPrice {
  CatalogEntry entry;
  base::WallTime at;  // when this price was first published
};

class PriceBook {
 public:
  PriceBook(BookOptions options, std::vector<SourceOptions> sources);

  AcceptanceReport Take(size_t source, const Snapshot& snapshot, base::WallTime now);
  void Unchanged(size_t source, base::WallTime now);

  // The entries to publish at `now`: offerings and resource types that sources define, by key, then the resource types
  // that the configuration derives. Static prices (Quality::kStatic) are published as they are; other prices change
  // only if hysteresis allows it. Idempotent: the same state and time give the same entries.
  std::vector<CatalogEntry> Publish(base::WallTime now);

  // For saving and restoring the book across restarts (last_good.h).
  const AcceptedPrices& accepted(size_t source) const { return accepted_[source]; }
  const std::map<std::string, PublishedPrice>& published() const { return published_; }
  const std::vector<SourceOptions>& sources() const { return sources_; }
  void Restore(size_t source, AcceptedPrices prices) { accepted_[source] = std::move(prices); }
  void RestorePublished(std::map<std::string, PublishedPrice> published) { published_ = std::move(published); }

 private:
  std::vector<SourcePrices> Views() const;
  AcceptanceOptions AcceptanceOf(size_t source) const;
  void UpdatePublished(const std::string& key, CatalogEntry entry, base::WallTime now);

  const BookOptions options_;
  const std::vector<SourceOptions> sources_;
  std::vector<AcceptedPrices> accepted_;  // by source
  std::map<std::string, PublishedPrice> published_;
};

}  // namespace medley::sched
