// SkyPilot-style price tables. Internal to catalog/.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>
#include <vector>

#include "scheduler-service/catalog/catalog.h"

namespace medley::sched {

// The first line names the columns, InstanceType among them.
bool LooksLikePriceCsv(std::string_view text);

// One entry for a row's Price (on-demand) and one for its SpotPrice, where they are given, with the shape of the
// machine (vCPUs, MemoryGiB, AcceleratorName, AcceleratorCount). Rows without an InstanceType are left out: they
// price a GPU alone. Errors: InvalidArgument with the line.
absl::StatusOr<std::vector<CatalogEntry>> ParsePriceCsv(std::string_view text, const std::string& provider);

}  // namespace medley::sched
