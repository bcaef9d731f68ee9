// Parses price tables in the format of SkyPilot's catalogs. Internal to catalog/.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>
#include <vector>

#include "scheduler-service/catalog/catalog.h"

namespace medley::sched {

// True if the first line is a list of columns that includes InstanceType.
bool LooksLikePriceCsv(std::string_view text);

// Returns an entry for each row's Price (on-demand) and one for its SpotPrice, if present, with the shape of the
// machine (vCPUs, MemoryGiB, AcceleratorName, AcceleratorCount). Skips rows without an InstanceType: they price a GPU
// alone. Adds a status with the line to `left_out` for each price that cannot be one ("0.0", "1e-400"), but not for an
// empty one or "nan". Errors: InvalidArgument with the line: a row of another length; no price is left.
absl::StatusOr<std::vector<CatalogEntry>> ParsePriceCsv(std::string_view text, const std::string& provider,
                                                        std::vector<absl::Status>& left_out);

}  // namespace medley::sched
