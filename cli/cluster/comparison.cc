#include "cli/cluster/comparison.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "cli/cluster/calibration.h"
#include "cli/format.h"
#include "cli/table.h"
#include "common/model/plan_result.h"
#include "operator/records/prediction_spread.h"

namespace medley::cli {
namespace {

using kube::Json;

constexpr double kNear = 0.9;  // measured throughput below this fraction of the prediction is reported

// "20,110 +- 3 %"
double LeftUsd(double samples, double throughput, double usd_per_hour) {
  return throughput > 0 ? samples / throughput / 3600 * usd_per_hour : 0;
}

}  // namespace

Comparison Compare(const JobPlanRequest& job_request, const model::PlanResult& result) {
  Comparison c;
  if (!job_request.record || job_request.status.finished() || !result.plan) return c;
  const ops::PlanRecord& record = *job_request.record;
  std::map<std::string, double> prices;
  for (const model::Resource& resource : job_request.request.resources) {
    if (resource.price_per_unit_hour > 0) prices[resource.name] = resource.price_per_unit_hour;
  }
  c.running = true;
  c.same = result.execution_plan && ops::SameShape(record.plan, *result.execution_plan);
  c.summary = model::Summary(record.plan, record.layer_names);
  c.throughput = record.plan.estimate.throughput;
  c.spread = ops::PredictionSpread(job_request.request.model, record.plan);
  c.calibrated = job_request.calibration != 1;
  c.measured_throughput = job_request.status.observed ? job_request.status.observed->throughput : 0;
  c.usd_per_hour = record.UsdPerHour(prices);
  const double left = job_request.request.training.TotalSamples();
  c.stay_usd = LeftUsd(left, c.measured_throughput > 0 ? c.measured_throughput : c.throughput, c.usd_per_hour);
  c.move_usd = LeftUsd(left, result.plan->throughput, result.plan->cost_per_hour);
  return c;
}

std::vector<std::string> ComparisonLines(const Comparison& c, const model::PlanResult& result) {
  if (!c.running) return {};
  Table table({"", "SAMPLES/S", "MEASURED", "USD/H", "USD LEFT"});
  table.Add({"running plan", WithSpread(c.throughput, c.spread),
             OrDash(c.measured_throughput > 0, Thousands(c.measured_throughput)), Usd(c.usd_per_hour),
             Usd(c.stay_usd)});
  if (!c.same)
    table.Add({"new plan", Thousands(result.plan->throughput), "-", Usd(result.plan->cost_per_hour), Usd(c.move_usd)});
  std::vector<std::string> lines = Lines(table.Text());
  lines.push_back("running: " + c.summary);
  if (c.same) {
    lines.emplace_back("the new plan is the same");
  } else if (result.step_time) {  // of a job with spec.objective.fastest
    const double now = c.measured_throughput > 0 ? c.measured_throughput : c.throughput;
    lines.push_back(
        fmt::format("throughput of the new plan, compared with now: {}", Percent(now, result.plan->throughput)));
  } else if (c.stay_usd <= 0) {
    lines.emplace_back("the cost of staying is unknown, because a pool of the running plan has no price now");
  } else if (c.move_usd < c.stay_usd) {
    lines.push_back(
        fmt::format("the new plan would cost {} USD less ({}) for the remaining samples, not counting the move",
                    Usd(c.stay_usd - c.move_usd), Percent(c.stay_usd, c.move_usd)));
  } else {
    lines.push_back(fmt::format("the new plan would cost {} USD more ({}) for the remaining samples",
                                Usd(c.move_usd - c.stay_usd), Percent(c.stay_usd, c.move_usd)));
  }
  if (!c.same && !c.calibrated && c.measured_throughput > 0 && c.measured_throughput < c.throughput * kNear) {
    lines.push_back(
        fmt::format("the running plan reaches {:.0f} % of its predicted throughput; the new one may fall short as well",
                    100 * c.measured_throughput / c.throughput));
  }
  return lines;
}

std::string ComparisonJson(const JobPlanRequest& job_request, const Comparison& c, const std::string& plan_json) {
  Json json = {{"plan", Json::parse(plan_json, nullptr, false)}, {"notes", job_request.notes}};
  if (c.running) {
    json["running"] = {{"same", c.same},
                       {"summary", c.summary},
                       {"generation", job_request.record->plan.generation},
                       {"throughput", c.throughput},
                       {"throughputSpread", c.spread},
                       {"calibration", job_request.calibration},
                       {"measuredThroughput", c.measured_throughput},
                       {"usdPerHour", c.usd_per_hour},
                       {"usdLeft", c.stay_usd},
                       {"usdLeftOnPlan", c.move_usd}};
  }
  return json.dump(2) + "\n";
}

}  // namespace medley::cli
