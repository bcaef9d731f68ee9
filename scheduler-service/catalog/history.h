// The history of published prices: a bounded series per key.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "scheduler-service/catalog/entry.h"

namespace medley::sched {

struct PricePoint {
  base::WallTime time;  // of the publication
  double price_per_unit_hour = 0;
  double price_per_instance_hour = 0;
  int64_t revision = 0;
  Quality quality = Quality::kLive;
  bool operator==(const PricePoint&) const = default;
};

struct PriceSeries {
  CatalogEntry current;
  std::vector<PricePoint> points;  // oldest first
  double relative_change = 0;      // of the last price change: (new - old) / old; 0 if the price never changed
};

struct HistoryOptions {
  size_t max_points_per_key = 10'000;
  size_t max_points = 500'000;  // of all keys; 40 bytes each
  base::nanoseconds max_age = std::chrono::hours(24 * 90);
};

// Not thread-safe. The current price is always kept, regardless of its age.
class PriceHistory {
 public:
  explicit PriceHistory(HistoryOptions options = {}) : options_(options) {}

  // Records the entries of a published revision whose price or quality changed.
  void Record(const std::vector<CatalogEntry>& entries, int64_t revision, base::WallTime now);
  // The history of the key of `current`: the kept points with time >= since; none without `since`.
  PriceSeries Series(const CatalogEntry& current, std::optional<base::WallTime> since) const;
  size_t size() const { return size_; }

 private:
  void Trim(base::WallTime now);
  // Drops keys that are no longer published and whose last price is older than max_age.
  void ForgetUnpublished(const std::vector<CatalogEntry>& entries, base::WallTime now);

  HistoryOptions options_;
  std::map<std::string, std::deque<PricePoint>> points_;
  size_t size_ = 0;  // of all deques
};

}  // namespace medley::sched
