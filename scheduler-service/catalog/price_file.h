// Price files: their format, and a feed that watches one.
//
// YAML or JSON, the message medley.scheduler.v1.Catalog: a list `entries` of offerings or resource types with prices
// (docs/planning.md). CSV: a header line with the columns of SkyPilot's catalogs (InstanceType, Price, SpotPrice,
// Region, AvailabilityZone; others are ignored); the provider is the file's name.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/metrics/metrics.h"
#include "scheduler-service/catalog/catalog.h"

namespace medley::sched {

// All entries or an error: a file is taken whole or not at all. Refused: a price that is not finite or not positive,
// an entry that names nothing, two entries for one key, no entries. Errors: InvalidArgument naming entry or line. Pure.
absl::StatusOr<std::vector<CatalogEntry>> ParsePriceFile(std::string_view text, const std::string& name,
                                                         base::WallTime now);

// Publishes a file into a store. Changes are found by content (polled), so replacing, rewriting and Kubernetes'
// symlink swaps are all seen. A file that is missing or refused leaves the last good prices in place; a counter
// (medley_price_rejected_total) and a log line say so, once for each bad content. Borrows everything; not thread-safe.
class PriceFileFeed {
 public:
  PriceFileFeed(std::filesystem::path path, CatalogStore& store, metrics::Registry& metrics, base::Clock& clock);

  // Looks once. Errors: why the file was not taken (NotFound, InvalidArgument, ...).
  absl::Status Poll();
  // Polls every `interval` until `stop`.
  void Run(base::nanoseconds interval, std::stop_token stop);

 private:
  absl::Status Reject(const std::string& what, std::string_view reason, const absl::Status& status);
  void ShowPrices();

  const std::filesystem::path path_;
  CatalogStore& store_;
  metrics::Registry& metrics_;
  base::Clock& clock_;
  std::optional<std::string> last_seen_;  // hash of the content, or "error" and what; empty before the first look
  absl::Status last_status_;
  std::vector<metrics::Labels> shown_;
};

}  // namespace medley::sched
