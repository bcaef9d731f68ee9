#include "scheduler-service/handlers/call_record.h"

#include <fmt/core.h>

#include <string>

#include "common/base/log.h"
#include "common/base/status.h"
#include "common/model/plan_result.h"
#include "common/model/reason.h"

namespace medley::sched {

void CallRecord::Answered(std::string_view method, const Call& call, const absl::Status& status, double seconds) const {
  const std::string code(absl::StatusCodeToString(status.code()));
  metrics_
      .GetCounter("medley_scheduler_requests_total", "Requests answered, by method and status code",
                  {{"method", std::string(method)}, {"code", code}})
      .Increment();
  metrics_
      .GetHistogram("medley_scheduler_request_seconds", "Time to answer a request", metrics::LatencyBounds(),
                    {{"method", std::string(method)}})
      .Observe(seconds);
  const base::log::Level level = !status.ok()  ? base::log::Level::kWarn
                                 : call.cached ? base::log::Level::kDebug
                                               : base::log::Level::kInfo;
  base::log::Write(level, "answered",
                   {{"request", call.id},
                    {"method", std::string(method)},
                    {"planner", call.planner},
                    {"seconds", fmt::format("{:.6f}", seconds)},
                    {"code", code},
                    {"cached", call.cached ? "true" : "false"},
                    {"error", base::Message(status)}});
}

void CallRecord::Planned(const model::PlanResult& result) const {
  const bool feasible = result.plan || result.step_time;
  metrics_
      .GetCounter("medley_plans_total", "Planning requests answered",
                  {{"planner", result.planner}, {"feasible", feasible ? "true" : "false"}})
      .Increment();
  metrics_
      .GetHistogram("medley_planning_seconds", "Time spent planning", metrics::LatencyBounds(),
                    {{"planner", result.planner}})
      .Observe(result.planning_seconds);
  if (result.gap) {
    metrics_
        .GetHistogram("medley_plan_gap_ratio", "Proven distance from the optimum, relative to the plan's value",
                      {0, 1e-6, 1e-4, 1e-3, 0.01, 0.05, 0.1, 0.25, 0.5, 1}, {{"planner", result.planner}})
        .Observe(*result.gap);
  }
  if (!feasible) Infeasible(result.reasons);
}

void CallRecord::Infeasible(const std::vector<model::Reason>& reasons) const {
  for (const model::Reason& reason : reasons) {
    metrics_
        .GetCounter("medley_plans_infeasible_total", "Constraints that made a planning request infeasible",
                    {{"constraint", reason.constraint}})
        .Increment();
  }
}

}  // namespace medley::sched
