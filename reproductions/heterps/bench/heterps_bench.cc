// The figures of HeterPS, section 6, as JSON on standard output:
//   heterps_bench [--seeds 10] [--limit-seconds 60] [--root .] [planners] [table2] [provision] [figure11]
// planners: cost relative to the optimum and seconds of every planner; table2: HeterPS' numbers of layers compared with
// brute force; provision: the methods to provision a schedule; figure11: every planner's plan for the models of
// examples/zoo. planning.py makes tables from its output.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/model/convert.h"
#include "common/model/text.h"
#include "medley/profile/v1/profile.pb.h"
#include "reproductions/heterps/bench/figure11.h"
#include "reproductions/heterps/heterps_planners.h"
#include "reproductions/heterps/provision_methods.h"
#include "scheduler-service/cost/problem.h"
#include "scheduler-service/planner/builtin.h"
#include "scheduler-service/planning/stages.h"
#include "scheduler-service/profile/analytic.h"
#include "tests/bench/many_types.h"
#include "tests/bench/planner_bench_parts.h"

namespace medley::reproductions::heterps {
namespace {

using bench::Json;
using bench::PlannerBench;

// Provisions the schedule of the optimum with every method, for several throughputs.
absl::Status Provision(const PlannerBench& parts, Json& out) {
  MEDLEY_ASSIGN_OR_RETURN(const model::PlanRequest ctrdnn, parts.Request("ctrdnn-16"));
  for (const double factor : {0.2, 0.5, 1.0, 2.0, 4.0, 6.0}) {
    model::PlanRequest request = ctrdnn;
    request.constraints.min_throughput *= factor;
    MEDLEY_ASSIGN_OR_RETURN(const sched::Problem problem, sched::Problem::Compile(request));
    MEDLEY_ASSIGN_OR_RETURN(const PlannerBench::Timed best,
                            parts.Time("exact", problem, 1, parts.options().limit_seconds));
    if (!best.solution.plan) continue;
    MEDLEY_ASSIGN_OR_RETURN(const std::vector<sched::StageChoice> stages, StagesOf(problem, *best.solution.plan));
    for (const ProvisionMethod& method : ProvisionMethods()) {
      const double begin = bench::ProcessorSeconds();
      const auto plan = method.provision(problem, stages);
      out.push_back({{"minThroughput", request.constraints.min_throughput},
                     {"method", method.name},
                     {"usd", plan ? Json(plan->score.cost) : Json()},
                     {"processorSeconds", bench::ProcessorSeconds() - begin}});
    }
  }
  return absl::OkStatus();
}

absl::Status Table2(const PlannerBench& parts, Json& out) {
  const auto hardware = sched::HardwareCatalog::Builtin();
  MEDLEY_RETURN_IF_ERROR(hardware.status());
  double seconds_each = 0;  // per schedule with brute force
  for (const int types : {2, 4}) {
    for (const int layers : {8, 12, 16, 20}) {
      MEDLEY_ASSIGN_OR_RETURN(model::PlanRequest request, parts.Request("ctrdnn-16"));
      MEDLEY_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(parts.options().root + "/examples/models/ctrdnn-" +
                                                                     std::to_string(layers) + ".yaml"));
      profile::v1::Model table;
      MEDLEY_RETURN_IF_ERROR(model::ParseText(text, table));
      MEDLEY_ASSIGN_OR_RETURN(request.model, model::FromProto(table));
      for (model::Resource& r : request.resources) r.hardware = r.name;
      MEDLEY_RETURN_IF_ERROR(sched::AddAnalyticProfiles(request, *hardware));
      // BF(n) in the paper has n types in total, although the caption says otherwise: its time grows by n^4 with 4
      // more layers.
      MEDLEY_ASSIGN_OR_RETURN(const sched::Problem problem,
                              sched::Problem::Compile(sched::WithTypes(request, types, 1)));
      Json row = {{"layers", layers}, {"types", types}};
      const double schedules = std::pow(types, layers);
      const bool measured = schedules * seconds_each < parts.options().limit_seconds;
      if (measured) {
        MEDLEY_ASSIGN_OR_RETURN(const PlannerBench::Timed brute,
                                parts.Time("brute-force", problem, 1, 20 * parts.options().limit_seconds));
        seconds_each = brute.processor / schedules;
        row["bruteUsd"] = brute.solution.plan ? Json(brute.solution.figures.usd) : Json();
      }
      row["bruteSeconds"] = schedules * seconds_each;
      row["bruteMeasured"] = measured;
      for (const char* planner : {"exact", "rl-lstm"}) {
        MEDLEY_ASSIGN_OR_RETURN(const PlannerBench::Timed timed,
                                parts.Time(planner, problem, 1, parts.options().limit_seconds));
        row[planner] = {{"seconds", timed.seconds},
                        {"processorSeconds", timed.processor},
                        {"usd", timed.solution.plan ? Json(timed.solution.figures.usd) : Json()}};
      }
      out.push_back(row);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Json> Run(const bench::PlannerBenchOptions& options, const std::vector<std::string>& what) {
  sched::Registry registry = sched::BuiltinPlanners();
  for (auto& planner : MakeHeterpsPlanners()) registry.Add(std::move(planner));
  const PlannerBench parts(options, registry);
  Json out = {{"seeds", options.seeds}, {"limitSeconds", options.limit_seconds}};
  const auto wanted = [&](const char* name) { return what.empty() || std::ranges::find(what, name) != what.end(); };
  if (wanted("provision")) MEDLEY_RETURN_IF_ERROR(Provision(parts, out["provision"]));
  if (wanted("table2")) MEDLEY_RETURN_IF_ERROR(Table2(parts, out["table2"]));
  if (wanted("figure11")) MEDLEY_RETURN_IF_ERROR(Figure11(options, registry, out["figure11"]));
  if (wanted("planners")) {
    MEDLEY_RETURN_IF_ERROR(parts.Planners(
        {"exact", "rl-lstm", "rl-rnn", "bayesian", "genetic", "greedy", "heuristic", "gpu-only", "cpu-only"},
        {"rl-lstm", "rl-rnn", "bayesian", "genetic"}, out["planners"]));
  }
  return out;
}

}  // namespace
}  // namespace medley::reproductions::heterps

int main(int argc, char** argv) {
  CLI::App app("The figures of HeterPS as JSON");
  medley::bench::PlannerBenchOptions options;
  std::vector<std::string> what;
  app.add_option("what", what, "planners, table2, provision, figure11; default: all")
      ->check(CLI::IsMember({"planners", "table2", "provision", "figure11"}));
  app.add_option("--root", options.root, "the repository")->capture_default_str();
  app.add_option("--seeds", options.seeds, "of every random planner and generator")->check(CLI::Range(1, 1000));
  app.add_option("--limit-seconds", options.limit_seconds, "of one plan")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  const auto out = medley::reproductions::heterps::Run(options, what);
  if (!out.ok()) {
    std::fprintf(stderr, "heterps_bench: %s\n", medley::base::Message(out.status()).c_str());
    return 1;
  }
  std::printf("%s\n", out->dump(1).c_str());
  return 0;
}
