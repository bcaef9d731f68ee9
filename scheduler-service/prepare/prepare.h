// Completes a planning request, in the same way for the scheduling service (gRPC and REST) and the command line. Pure.
#pragma once

#include <absl/status/status.h>

#include "common/model/forward.h"
#include "scheduler-service/catalog/catalog.h"
#include "scheduler-service/profile/hardware.h"

namespace medley::sched {

// Fills in prices from the catalog (ResolvePrices), then analytic profiles for resources that name a datasheet
// (AddAnalyticProfiles). The order matters: a request without resources takes them from the catalog, and these may name
// datasheets. The request may still have no resources afterwards. Errors: InvalidArgument with the path of the field
// whose datasheet or layer is wrong; the request is then incomplete.
absl::Status PrepareRequest(const Catalog& catalog, const HardwareCatalog& hardware, model::PlanRequest& request);

}  // namespace medley::sched
