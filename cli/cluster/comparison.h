// Compares a new plan with the plan in force of a job. Pure.
#pragma once

#include <string>
#include <vector>

#include "cli/cluster/job_plan_request.h"
#include "common/model/forward.h"

namespace medley::cli {

struct Comparison {
  bool running = false;            // whether the job has a plan in force; if not, the other fields are unset
  bool same = false;               // whether both plans have the same stages, units, servers and schedule
  std::string summary;             // of the plan in force
  double throughput = 0;           // its predicted samples/s
  double spread = 0;               // relative standard deviation of the prediction; 0: unknown
  bool calibrated = false;         // whether the new plan is predicted by what the running one measures
  double measured_throughput = 0;  // its measured samples/s; 0: not measured
  double usd_per_hour = 0;         // its cost at the request's prices
  double stay_usd = 0;             // cost of the remaining samples with it, at the measured (else predicted) throughput
  double move_usd = 0;             // cost of the remaining samples with the new plan, as predicted; without the move
};

// `result` must have a plan.
Comparison Compare(const JobPlanRequest& job_request, const model::PlanResult& result);

std::vector<std::string> ComparisonLines(const Comparison& comparison, const model::PlanResult& result);

// {"plan": ..., "running": {...}, "notes": [...]}; `plan_json` is the PlanResponse.
std::string ComparisonJson(const JobPlanRequest& job_request, const Comparison& comparison,
                           const std::string& plan_json);

}  // namespace medley::cli
