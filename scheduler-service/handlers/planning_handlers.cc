// The handlers Plan, Pareto, Provision and Evaluate.
#include <algorithm>

#include "common/base/status.h"
#include "common/model/convert.h"
#include "common/model/plan_result.h"
#include "common/model/planning.h"
#include "scheduler-service/cost/evaluate.h"
#include "scheduler-service/cost/problem.h"
#include "scheduler-service/handlers/answer.h"
#include "scheduler-service/handlers/field_path.h"
#include "scheduler-service/handlers/handlers.h"
#include "scheduler-service/handlers/prepared.h"
#include "scheduler-service/planner/pareto.h"
#include "scheduler-service/planner/pareto_proto.h"
#include "scheduler-service/planning/judge.h"

namespace medley::sched {
namespace {

namespace pb = scheduler::v1;

template <typename Out>
void FillAnswer(const ProvisionResult& result, Out& out) {
  if (result.plan) model::ToProto(*result.plan, *out.mutable_plan());
  for (const model::Reason& reason : result.reasons) model::ToProto(reason, *out.add_reasons());
}

template <typename Request>
NamedSchedule NamedScheduleOf(const Request& in) {
  return {{in.schedule().begin(), in.schedule().end()}, {in.cuts().begin(), in.cuts().end()}};
}

}  // namespace

absl::Status Handlers::DoPlan(const pb::PlanRequest& in, Call& call, base::SteadyTime end, pb::PlanResponse& out) {
  MEDLEY_ASSIGN_OR_RETURN(const Prepared prepared, Prepare(in, call));
  const std::string& name = prepared.request.planner.name;
  if (context_.planners.Find(name, SupplyOf(prepared.request)) != nullptr) call.planner = name;
  call.input_version.catalog_revision = prepared.origin.catalog_revision;
  const base::SteadyTime deadline = std::min({call.deadline, end, context_.clock.Steady() + options_.max_planning});
  MEDLEY_ASSIGN_OR_RETURN(model::PlanResult result, MakePlan(prepared.request, prepared.origin, context_.planners,
                                                             context_.clock, call.stop, deadline));
  result.prediction = prepared.prediction;
  if (in.simulate() && result.execution_plan && result.execution_plan->estimate.simulated_throughput == 0) {
    model::Estimate& estimate = result.execution_plan->estimate;
    estimate.simulated_throughput = SimulatedThroughput(*result.execution_plan, prepared.request, call.stop);
  }
  model::ToProto(result, out);
  call.reproducible = result.complete;
  record_.Planned(result);
  return absl::OkStatus();
}

absl::Status Handlers::Plan(const pb::PlanRequest& in, Call& call, pb::PlanResponse& out) {
  return Answer("Plan", in, call, out,
                [&](pb::PlanResponse& o, base::SteadyTime end) { return DoPlan(in, call, end, o); });
}

absl::Status Handlers::Pareto(const pb::ParetoRequest& in, Call& call, pb::ParetoResponse& out) {
  return Answer("Pareto", in, call, out, [&](pb::ParetoResponse& o, base::SteadyTime) -> absl::Status {
    const auto prepared = Prepare(in.request(), call);
    if (!prepared.ok()) return WithinField("request", prepared.status());
    MEDLEY_RETURN_IF_ERROR(WithinField("request", model::Validate(prepared->request)));
    call.input_version.catalog_revision = prepared->origin.catalog_revision;
    const base::SteadyTime deadline = std::min(call.deadline, context_.clock.Steady() + options_.max_planning);
    MEDLEY_ASSIGN_OR_RETURN(const ParetoResult result, MakePareto(prepared->request, prepared->origin, in.max_points(),
                                                                  context_.clock, call.stop, deadline));
    ToProto(result, o);
    if (result.plans.empty()) record_.Infeasible(result.reasons);
    call.reproducible = result.complete;
    return absl::OkStatus();
  });
}

absl::Status Handlers::Provision(const pb::ProvisionRequest& in, Call& call, pb::ProvisionResponse& out) {
  return Answer("Provision", in, call, out, [&](pb::ProvisionResponse& o, base::SteadyTime) -> absl::Status {
    const auto prepared = Prepare(in.request(), call);
    if (!prepared.ok()) return WithinField("request", prepared.status());
    MEDLEY_RETURN_IF_ERROR(WithinField("request", model::Validate(prepared->request)));
    call.input_version.catalog_revision = prepared->origin.catalog_revision;
    MEDLEY_ASSIGN_OR_RETURN(const ProvisionResult result, MakeProvision(prepared->request, NamedScheduleOf(in)));
    o.set_feasible(result.plan.has_value());
    FillAnswer(result, o);
    if (!result.plan) record_.Infeasible(result.reasons);
    call.reproducible = true;
    return absl::OkStatus();
  });
}

absl::Status Handlers::Evaluate(const pb::EvaluateRequest& in, Call& call, pb::EvaluateResponse& out) {
  return Answer("Evaluate", in, call, out, [&](pb::EvaluateResponse& o, base::SteadyTime) -> absl::Status {
    const auto prepared = Prepare(in.request(), call);
    if (!prepared.ok()) return WithinField("request", prepared.status());
    MEDLEY_RETURN_IF_ERROR(WithinField("request", model::Validate(prepared->request)));
    call.input_version.catalog_revision = prepared->origin.catalog_revision;
    MEDLEY_ASSIGN_OR_RETURN(const ProvisionResult result, MakeEvaluation(prepared->request, NamedScheduleOf(in),
                                                                         {in.units().begin(), in.units().end()}));
    FillAnswer(result, o);
    call.reproducible = true;
    return absl::OkStatus();
  });
}

}  // namespace medley::sched
