// Price files: their format. The feed that watches one is file_feed.h.
//
// YAML or JSON, the message medley.scheduler.v1.Catalog: a list `entries` of offerings or resource types with prices
// (docs/planning.md). CSV: a header line with the columns of SkyPilot's catalogs (InstanceType, Price, SpotPrice,
// Region, AvailabilityZone; others are ignored); the provider is the file's name.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "scheduler-service/catalog/catalog.h"

namespace medley::sched {

// All entries or an error: a file is taken whole or not at all. Refused: a price that is not finite or not positive,
// an entry that names nothing, two entries for one key, no entries. Errors: InvalidArgument naming entry or line. Pure.
absl::StatusOr<std::vector<CatalogEntry>> ParsePriceFile(std::string_view text, const std::string& name,
                                                         base::WallTime now);

}  // namespace medley::sched
