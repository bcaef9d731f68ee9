#include "cli/cluster/comparison.h"

#include <fmt/core.h>

#include <map>

#include "cli/format.h"
#include "cli/table.h"

namespace medley::cli {
namespace {

using kube::Json;

constexpr double kNear = 0.9;  // of a prediction: what measures less is said

double LeftUsd(double samples, double throughput, double usd_per_hour) {
  return throughput > 0 ? samples / throughput / 3600 * usd_per_hour : 0;
}

}  // namespace

Comparison Compare(const JobQuestion& question, const model::PlanResult& result) {
  Comparison c;
  if (!question.record || question.status.finished() || !result.plan) return c;
  const ops::PlanRecord& record = *question.record;
  std::map<std::string, double> prices;
  for (const model::Resource& resource : question.request.resources) {
    if (resource.price_per_unit_hour > 0) prices[resource.name] = resource.price_per_unit_hour;
  }
  c.running = true;
  c.same = result.execution_plan && ops::SameShape(record.plan, *result.execution_plan);
  c.summary = model::Summary(record.plan, record.layer_names);
  c.throughput = record.plan.estimate.throughput;
  c.measured_throughput = question.status.observed ? question.status.observed->throughput : 0;
  c.usd_per_hour = record.UsdPerHour(prices);
  const double left = question.request.training.TotalSamples();
  c.stay_usd = LeftUsd(left, c.measured_throughput > 0 ? c.measured_throughput : c.throughput, c.usd_per_hour);
  c.move_usd = LeftUsd(left, result.plan->throughput, result.plan->cost_per_hour);
  return c;
}

std::vector<std::string> ComparisonLines(const Comparison& c, const model::PlanResult& result) {
  if (!c.running) return {};
  Table table({"", "SAMPLES/S", "MEASURED", "USD/H", "USD LEFT"});
  table.Add({"running plan", Thousands(c.throughput),
             OrDash(c.measured_throughput > 0, Thousands(c.measured_throughput)), Usd(c.usd_per_hour),
             Usd(c.stay_usd)});
  if (!c.same)
    table.Add({"new plan", Thousands(result.plan->throughput), "-", Usd(result.plan->cost_per_hour), Usd(c.move_usd)});
  std::vector<std::string> lines = Lines(table.Text());
  lines.push_back("running: " + c.summary);
  if (c.same) {
    lines.emplace_back("it is what would be planned now");
  } else if (c.stay_usd <= 0) {
    lines.emplace_back("a pool of the running plan has no price now: what staying costs is not known");
  } else if (c.move_usd < c.stay_usd) {
    lines.push_back(fmt::format("the new plan would cost {} USD less ({}) for what is left, the move apart",
                                Usd(c.stay_usd - c.move_usd), Percent(c.stay_usd, c.move_usd)));
  } else {
    lines.push_back(fmt::format("the new plan would cost {} USD more ({}) for what is left",
                                Usd(c.move_usd - c.stay_usd), Percent(c.stay_usd, c.move_usd)));
  }
  if (!c.same && c.measured_throughput > 0 && c.measured_throughput < c.throughput * kNear) {
    lines.push_back(
        fmt::format("the running plan measures {:.0f} % of what was predicted of it; the new one "
                    "may fall short as well",
                    100 * c.measured_throughput / c.throughput));
  }
  return lines;
}

std::string ComparisonJson(const JobQuestion& question, const Comparison& c, const std::string& plan_json) {
  Json json = {{"plan", Json::parse(plan_json, nullptr, false)}, {"notes", question.notes}};
  if (c.running) {
    json["running"] = {{"same", c.same},
                       {"summary", c.summary},
                       {"generation", question.record->plan.generation},
                       {"throughput", c.throughput},
                       {"measuredThroughput", c.measured_throughput},
                       {"usdPerHour", c.usd_per_hour},
                       {"usdLeft", c.stay_usd},
                       {"usdLeftOnPlan", c.move_usd}};
  }
  return json.dump(2) + "\n";
}

}  // namespace medley::cli
