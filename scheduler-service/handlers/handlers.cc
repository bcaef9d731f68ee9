#include "scheduler-service/handlers/handlers.h"

#include <algorithm>

#include "common/base/status.h"
#include "common/model/convert.h"
#include "scheduler-service/catalog/catalog_proto.h"
#include "scheduler-service/planner/plan.h"

namespace medley::sched {
namespace {

namespace pb = scheduler::v1;

// The request with the catalog's prices. `origin`: where they came from.
absl::StatusOr<model::PlanRequest> Resolve(const pb::PlanRequest& in, const CatalogStore& store, PriceOrigin& origin) {
  MEDLEY_ASSIGN_OR_RETURN(model::PlanRequest request, model::FromProto(in));
  const CatalogSnapshot catalog = store.Get();
  ResolvePrices(*catalog, request);
  if (request.resources.empty()) {
    return base::InvalidArgument("resources: none given, and the catalog defines no resource types");
  }
  origin = {catalog->revision, catalog->price_time};
  return request;
}

template <typename Out>
void FillAnswer(const ProvisionResult& result, Out& out) {
  if (result.plan) model::ToProto(*result.plan, *out.mutable_plan());
  for (const model::Reason& reason : result.reasons) model::ToProto(reason, *out.add_reasons());
}

}  // namespace

Handlers::Handlers(const Registry& planners, CatalogStore& catalog, metrics::Registry& metrics,
                   const base::Clock& clock, Options options)
    : planners_(planners), catalog_(catalog), metrics_(metrics), clock_(clock), options_(options) {}

template <typename Work>
absl::Status Handlers::Measured(const char* method, Work work) {
  const base::SteadyTime begin = clock_.Steady();
  absl::Status status;
  if (running_.fetch_add(1) >= options_.max_concurrent) {
    status = base::ResourceExhausted("{} requests are being answered already, try again later",
                                     options_.max_concurrent);
  } else {
    status = work();
  }
  running_.fetch_sub(1);
  metrics_
      .GetCounter("medley_scheduler_requests_total", "Requests answered",
                  {{"method", method}, {"code", std::string(absl::StatusCodeToString(status.code()))}})
      .Increment();
  metrics_
      .GetHistogram("medley_scheduler_request_seconds", "Time to answer", metrics::LatencyBounds(),
                    {{"method", method}})
      .Observe(base::ToSeconds(clock_.Steady() - begin));
  return status;
}

absl::Status Handlers::DoPlan(const pb::PlanRequest& in, const CallLimits& limits, pb::PlanResponse& out) {
  PriceOrigin origin;
  MEDLEY_ASSIGN_OR_RETURN(const model::PlanRequest request, Resolve(in, catalog_, origin));
  MEDLEY_ASSIGN_OR_RETURN(const model::PlanResult result,
                          MakePlan(request, origin, planners_, clock_, limits.stop, limits.deadline));
  model::ToProto(result, out);
  metrics_
      .GetCounter("medley_plans_total", "Planning questions answered",
                  {{"planner", result.planner}, {"feasible", result.plan ? "true" : "false"}})
      .Increment();
  metrics_.GetHistogram("medley_planning_seconds", "Time spent planning", metrics::LatencyBounds())
      .Observe(result.planning_seconds);
  return absl::OkStatus();
}

absl::Status Handlers::Plan(const pb::PlanRequest& in, const CallLimits& limits, pb::PlanResponse& out) {
  return Measured("Plan", [&] { return DoPlan(in, limits, out); });
}

absl::Status Handlers::Provision(const pb::ProvisionRequest& in, pb::ProvisionResponse& out) {
  return Measured("Provision", [&]() -> absl::Status {
    PriceOrigin origin;
    const auto request = Resolve(in.request(), catalog_, origin);
    if (!request.ok()) return base::Annotate(request.status(), "request");
    MEDLEY_ASSIGN_OR_RETURN(
        const ProvisionResult result,
        MakeProvision(*request, {in.schedule().begin(), in.schedule().end()}, in.method()));
    out.set_feasible(result.plan.has_value());
    FillAnswer(result, out);
    return absl::OkStatus();
  });
}

absl::Status Handlers::Evaluate(const pb::EvaluateRequest& in, pb::EvaluateResponse& out) {
  return Measured("Evaluate", [&]() -> absl::Status {
    PriceOrigin origin;
    const auto request = Resolve(in.request(), catalog_, origin);
    if (!request.ok()) return base::Annotate(request.status(), "request");
    MEDLEY_ASSIGN_OR_RETURN(const ProvisionResult result,
                            MakeEvaluation(*request, {in.schedule().begin(), in.schedule().end()},
                                           {in.units().begin(), in.units().end()}));
    FillAnswer(result, out);
    return absl::OkStatus();
  });
}

void Handlers::ListPlanners(pb::ListPlannersResponse& out) const {
  for (const auto& planner : planners_.planners()) {
    pb::PlannerInfo& info = *out.add_planners();
    info.set_name(std::string(planner->name()));
    info.set_description(std::string(planner->description()));
    info.set_proves_optimality(planner->proves_optimality());
  }
}

void Handlers::GetCatalog(pb::GetCatalogResponse& out) const {
  CatalogToProto(*catalog_.Get(), *out.mutable_catalog());
}

}  // namespace medley::sched
