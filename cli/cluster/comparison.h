// A plan made now beside the plan that a job runs. Pure.
#pragma once

#include <string>
#include <vector>

#include "cli/cluster/job_question.h"
#include "common/model/planning.h"

namespace medley::cli {

struct Comparison {
  bool running = false;            // the job has a plan; else the rest means nothing
  bool same = false;               // the same stages, units, servers and schedule
  std::string summary;             // of the running plan
  double throughput = 0;           // samples/s predicted of it
  double measured_throughput = 0;  // 0: not measured
  double usd_per_hour = 0;         // of the running plan, at the question's prices
  double stay_usd = 0;             // for the samples that are left, at what it measures (else predicts)
  double move_usd = 0;             // the same on the new plan, as predicted; without the move itself
};

// `result` has a plan.
Comparison Compare(const JobQuestion& question, const model::PlanResult& result);

std::vector<std::string> ComparisonLines(const Comparison& comparison, const model::PlanResult& result);

// {"plan": ..., "running": {...}, "notes": [...]}; `plan_json` is the PlanResponse.
std::string ComparisonJson(const JobQuestion& question, const Comparison& comparison, const std::string& plan_json);

}  // namespace medley::cli
