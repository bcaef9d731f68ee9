// What the service knows: planners, prices.
#include "common/base/status.h"
#include "scheduler-service/catalog/catalog_proto.h"
#include "scheduler-service/handlers/answer.h"
#include "scheduler-service/handlers/handlers.h"

namespace medley::sched {

namespace pb = scheduler::v1;

absl::Status Handlers::ListPlanners(const pb::ListPlannersRequest&, Call& call, pb::ListPlannersResponse& out) {
  return Read("ListPlanners", call, [&] {
    for (const auto& planner : context_.planners.planners()) {
      pb::PlannerInfo& info = *out.add_planners();
      info.set_name(std::string(planner->name()));
      info.set_description(std::string(planner->description()));
      info.set_proves_optimality(planner->proves_optimality());
    }
    return absl::OkStatus();
  });
}

absl::Status Handlers::GetCatalog(const pb::GetCatalogRequest&, Call& call, pb::GetCatalogResponse& out) {
  return Read("GetCatalog", call, [&] {
    CatalogToProto(*context_.catalog.Get(), *out.mutable_catalog());
    return absl::OkStatus();
  });
}

absl::Status Handlers::NextCatalog(int64_t after, base::nanoseconds timeout, const Call& call,
                                   pb::WatchCatalogResponse& out) {
  const CatalogSnapshot catalog = context_.catalog.WaitNewer(after, call.stop, timeout);
  if (catalog == nullptr) return base::NotFound("no newer catalog");
  CatalogToProto(*catalog, *out.mutable_catalog());
  return absl::OkStatus();
}

}  // namespace medley::sched
