// Parses price files. The feed that reads them is in file_feed.h.
//
// YAML or JSON: the message medley.scheduler.v1.Catalog, a list `entries` of offerings or resource types with prices
// (docs/operate/prices.md). CSV: a table with the columns of SkyPilot's catalogs (price_csv.h); the provider is the
// file's name without its extension.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "scheduler-service/catalog/catalog.h"

namespace medley::sched {

// Returns all entries of the file `name`, or an error. It is an error if a price is not within 1e-9 to 1e9, an entry
// has neither an offering nor a resource type, two entries have the same key, or there are no entries. Of a CSV, prices
// that are not within these bounds are left out instead: `left_out`, which may be null, says which. Errors:
// InvalidArgument naming the entry or line. Pure.
absl::StatusOr<std::vector<CatalogEntry>> ParsePriceFile(std::string_view text, const std::string& name,
                                                         base::WallTime now,
                                                         std::vector<absl::Status>* left_out = nullptr);

}  // namespace medley::sched
