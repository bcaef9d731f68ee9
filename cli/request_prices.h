// The prices of a planning request, out of a price file. Reads the file; thread-safe.
#pragma once

#include <absl/status/status.h>

#include <filesystem>

#include "common/base/clock.h"
#include "common/model/forward.h"
#include "scheduler-service/planner/plan.h"
#include "scheduler-service/profile/hardware.h"

namespace medley::cli {

// Fills in the prices of the resources that have none, from `file` (empty: there is no file), and what else planners
// need. `origin`: of the prices, if the file has any. What the file has that cannot be used is logged. Errors name the
// file or the field.
absl::Status PriceRequest(const std::filesystem::path& file, const sched::HardwareCatalog& hardware,
                          const base::Clock& clock, model::PlanRequest& request, sched::PriceOrigin& origin);

}  // namespace medley::cli
