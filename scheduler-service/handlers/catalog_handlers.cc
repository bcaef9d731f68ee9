// Handlers that list planners and prices.
#include <cstdlib>

#include "common/base/status.h"
#include "scheduler-service/catalog/catalog_proto.h"
#include "scheduler-service/handlers/answer.h"
#include "scheduler-service/handlers/handlers.h"
#include "scheduler-service/planner/list_proto.h"

namespace medley::sched {

namespace pb = scheduler::v1;

namespace {

constexpr int64_t kMostSeconds = 4102444800;  // 1970 to 2100; also the bound for times before 1970

}  // namespace

absl::Status Handlers::ListPlanners(const pb::ListPlannersRequest&, Call& call, pb::ListPlannersResponse& out) {
  return Read("ListPlanners", call, [&] {
    ToProto(context_.planners, out);
    return absl::OkStatus();
  });
}

absl::Status Handlers::GetCatalog(const pb::GetCatalogRequest&, Call& call, pb::GetCatalogResponse& out) {
  return Read("GetCatalog", call, [&] {
    CatalogToProto(*context_.catalog.Get(), *out.mutable_catalog());
    return absl::OkStatus();
  });
}

absl::Status Handlers::ListPrices(const pb::ListPricesRequest& in, Call& call, pb::ListPricesResponse& out) {
  return Read("ListPrices", call, [&]() -> absl::Status {
    std::optional<base::WallTime> since;
    if (in.has_since()) {
      const int64_t seconds = in.since().seconds();
      if (std::abs(seconds) > kMostSeconds)
        return base::InvalidArgument("since: must be between the years 1840 and 2100");
      since = base::WallTime(base::seconds(seconds));
    }
    const int64_t revision = context_.catalog.Get()->revision;
    PricesToProto(context_.catalog.History(in.type(), since), revision, context_.clock.Now(), out);
    return absl::OkStatus();
  });
}

absl::Status Handlers::NextCatalog(int64_t after, base::nanoseconds timeout, const Call& call,
                                   pb::WatchCatalogResponse& out) {
  const CatalogSnapshot catalog = context_.catalog.WaitNewer(after, call.stop, timeout);
  if (catalog == nullptr) return base::NotFound("the catalog has no newer revision");
  CatalogToProto(*catalog, *out.mutable_catalog());
  return absl::OkStatus();
}

}  // namespace medley::sched
