#include "cli/plan_pareto.h"

#include <fmt/core.h>

#include <cstdio>

#include "cli/output_file.h"
#include "cli/pareto_svg.h"
#include "cli/table.h"
#include "common/base/quantity.h"
#include "common/base/status.h"
#include "common/model/convert.h"
#include "common/model/text.h"
#include "scheduler-service/planner/pareto.h"
#include "scheduler-service/planner/pareto_proto.h"

namespace medley::cli {
namespace {

using base::FormatDecimal;

// "0-14 v100 x3, 15 cpu x1, servers cpu x1"
std::string Summary(const PricedRequest& priced, const model::ProvisionedPlan& plan) {
  std::string out;
  for (const model::ProvisionedStage& s : plan.stages) {
    const std::string layers = s.first_layer == s.last_layer ? std::to_string(s.first_layer)
                                                             : fmt::format("{}-{}", s.first_layer, s.last_layer);
    out += fmt::format("{}{} {} x{}", out.empty() ? "" : ", ", layers, s.resource_type, s.units);
    if (s.tables.OnDevice()) out += s.tables.place == model::TablePlace::kDevice ? " with tables" : " with cached rows";
  }
  if (plan.server_units > 0) out += fmt::format(", servers {} x{}", priced.request.server_type, plan.server_units);
  if (plan.trainers_with_rows > 0) out += fmt::format(", rows in {} trainers", plan.trainers_with_rows);
  return out;
}

void PrintTable(const PricedRequest& priced, const sched::ParetoResult& result) {
  Table table({"SAMPLES/S", "USD/H", "USD", "SECONDS", "STAGES"});
  for (const model::ProvisionedPlan& plan : result.plans) {
    table.Add({FormatDecimal(plan.throughput, 1), FormatDecimal(plan.cost_per_hour, 4), FormatDecimal(plan.cost_usd, 4),
               FormatDecimal(plan.execution_seconds, 1), Summary(priced, plan)});
  }
  std::printf("%s\n%s front, %s ms\n", table.Text().c_str(),
              result.complete ? "exact" : "the time budget ended: incomplete",
              FormatDecimal(result.planning_seconds * 1000, 3).c_str());
}

absl::Status WriteSvg(const PricedRequest& priced, const sched::ParetoResult& result, const std::string& file) {
  std::vector<PlotPoint> points;
  for (const model::ProvisionedPlan& plan : result.plans) {
    points.push_back(
        {plan.throughput, plan.cost_usd,
         fmt::format("{} samples/s, {} USD, {} USD/h: {}", FormatDecimal(plan.throughput, 0),
                     FormatDecimal(plan.cost_usd, 4), FormatDecimal(plan.cost_per_hour, 4), Summary(priced, plan)),
         points.empty()});
  }
  return WriteOutput(file, ParetoSvg(priced.request.model.name + ": cost and throughput", points));
}

absl::StatusOr<int> Front(const PlanFlags& flags, const ParetoFlags& pareto) {
  MEDLEY_ASSIGN_OR_RETURN(const PricedRequest priced, ReadPricedRequest(flags));
  const base::SystemClock clock;
  const auto result = sched::MakePareto(priced.request, priced.origin, pareto.points, clock, {});
  if (!result.ok()) return base::Annotate(result.status(), flags.file);
  if (flags.output != "table") {
    scheduler::v1::ParetoResponse message;
    sched::ToProto(*result, message);
    std::fputs((flags.output == "json" ? model::ToJson(message, true) : model::ToYaml(message)).c_str(), stdout);
  } else if (!result->plans.empty()) {
    PrintTable(priced, *result);
  } else {
    std::printf("infeasible:\n");
    for (const model::Reason& reason : result->reasons) {
      std::printf("  %s: %s\n", reason.constraint.c_str(), reason.message.c_str());
    }
  }
  if (result->plans.empty()) return 2;
  if (!pareto.svg.empty()) MEDLEY_RETURN_IF_ERROR(WriteSvg(priced, *result, pareto.svg));
  return 0;
}

}  // namespace

int RunPareto(const PlanFlags& flags, const ParetoFlags& pareto) {
  const auto status = Front(flags, pareto);
  if (status.ok()) return *status;
  std::fprintf(stderr, "medley plan: %s\n", base::Message(status.status()).c_str());
  return 1;
}

}  // namespace medley::cli
