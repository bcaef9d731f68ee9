// Measures the planners of the service in one thread and prints a JSON document to standard output:
//   planner_bench [--seeds 10] [--limit-seconds 60] [--root .] [exact] [pareto] [planners]
// exact: seconds and proofs; pareto: whole fronts; planners: cost relative to the optimum and seconds of every planner.
// tests/bench/run reads its output. heterps_bench (reproductions/heterps) has the other planners of HeterPS.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>

#include "common/base/status.h"
#include "scheduler-service/planner/builtin.h"
#include "tests/bench/planner_bench_parts.h"

namespace medley::bench {
namespace {

absl::StatusOr<Json> Run(const PlannerBenchOptions& options, const std::vector<std::string>& what) {
  const sched::Registry registry = sched::BuiltinPlanners();
  const PlannerBench bench(options, registry);
  Json out = {{"seeds", options.seeds}, {"limitSeconds", options.limit_seconds}};
  const auto wanted = [&](const char* name) { return what.empty() || std::ranges::find(what, name) != what.end(); };
  if (wanted("exact")) MEDLEY_RETURN_IF_ERROR(bench.Exact(out["exact"]));
  if (wanted("pareto")) MEDLEY_RETURN_IF_ERROR(bench.Pareto(out["pareto"]));
  if (wanted("planners")) {
    MEDLEY_RETURN_IF_ERROR(bench.Planners({"exact", "rl-lstm", "greedy", "heuristic", "gpu-only", "cpu-only"},
                                          {"rl-lstm"}, out["planners"]));
  }
  return out;
}

}  // namespace
}  // namespace medley::bench

int main(int argc, char** argv) {
  CLI::App app("The figures of planning as JSON");
  medley::bench::PlannerBenchOptions options;
  std::vector<std::string> what;
  app.add_option("what", what, "exact, pareto, planners; default: all")
      ->check(CLI::IsMember({"exact", "pareto", "planners"}));
  app.add_option("--root", options.root, "the repository")->capture_default_str();
  app.add_option("--seeds", options.seeds, "of every random planner and generator")->check(CLI::Range(1, 1000));
  app.add_option("--limit-seconds", options.limit_seconds, "of one plan")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  const auto out = medley::bench::Run(options, what);
  if (!out.ok()) {
    std::fprintf(stderr, "planner_bench: %s\n", medley::base::Message(out.status()).c_str());
    return 1;
  }
  std::printf("%s\n", out->dump(1).c_str());
  return 0;
}
