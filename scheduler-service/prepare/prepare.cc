#include "scheduler-service/prepare/prepare.h"

#include "common/model/model.h"
#include "common/model/planning.h"
#include "scheduler-service/profile/analytic.h"

namespace medley::sched {

absl::Status PrepareRequest(const Catalog& catalog, const HardwareCatalog& hardware, model::PlanRequest& request) {
  ResolvePrices(catalog, request);
  return AddAnalyticProfiles(request, hardware);
}

}  // namespace medley::sched
