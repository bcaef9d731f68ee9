// Everything known of prices, and what planners have been told of it. The pure middle of the poller: answers go in, the
// entries to publish come out.
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
  AcceptanceOptions acceptance;  // authoritative is each source's own
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
};

// A price that planners were told.
struct ToldPrice {
  CatalogEntry entry;
  base::WallTime at;
};

class PriceBook {
 public:
  PriceBook(BookOptions options, std::vector<SourceOptions> sources);

  AcceptanceReport Take(size_t source, const Snapshot& snapshot, base::WallTime now);
  void Unchanged(size_t source, base::WallTime now);

  // What planners should be told now: offerings and types that sources define, by key, then the types that the
  // configuration derives. A price that a source says a person wrote is told as it is; of the others only a change that
  // hysteresis lets through. Called again with the same knowledge and time it gives the same.
  std::vector<CatalogEntry> Publish(base::WallTime now);

  // Between runs (last_good.h).
  const AcceptedPrices& accepted(size_t source) const { return accepted_[source]; }
  const std::map<std::string, ToldPrice>& told() const { return told_; }
  const std::vector<SourceOptions>& sources() const { return sources_; }
  void Restore(size_t source, AcceptedPrices prices) { accepted_[source] = std::move(prices); }
  void RestoreTold(std::map<std::string, ToldPrice> told) { told_ = std::move(told); }

 private:
  std::vector<SourcePrices> Views() const;
  AcceptanceOptions AcceptanceOf(size_t source) const;
  void Tell(const std::string& key, CatalogEntry entry, base::WallTime now);

  const BookOptions options_;
  const std::vector<SourceOptions> sources_;
  std::vector<AcceptedPrices> accepted_;  // one a source
  std::map<std::string, ToldPrice> told_;
};

}  // namespace medley::sched
