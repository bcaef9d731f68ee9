// Measures the cost of the search planners relative to the optimum, and their time:
//   search_bench [--planners rl-lstm,greedy] [--types 2,4,8] [--seeds 10] [--random 6] REQUEST.yaml...
// Prints one line for each request, number of types and planner: the cost relative to the optimum (of `exact`) over the
// seeds, wall-clock seconds and CPU seconds.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/status.h"
#include "common/model/execution_plan.h"
#include "common/model/value_text.h"
#include "scheduler-service/cost/problem.h"
#include "scheduler-service/planner/builtin.h"
#include "scheduler-service/planning/candidate.h"
#include "tests/bench/many_types.h"
#include "tests/unit/scheduler-service/planner/random_request.h"

namespace medley::sched {
namespace {

absl::StatusOr<model::PlanRequest> Read(const std::string& path) {
  MEDLEY_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(path));
  return model::ParsePlanRequest(text);
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

struct Flags {
  std::vector<std::string> files;
  std::vector<std::string> planners = {"rl-lstm"};
  std::vector<int> types = {2, 4, 8};
  int seeds = 10;
  int random = 0;
  uint64_t variant = 1;  // seed of the added types
  model::PlannerOptions options;
};

// The whole Solve with a trained policy: from the features to the most probable schedule with its units.
absl::Status BenchInference(const Planner& planner, const Problem& problem) {
  const base::SystemClock clock;
  const Budget budget(clock, base::SteadyTime::max(), {});
  model::PlanRequest request = problem.request();
  request.planner.options = {{"rounds", 30.}};
  request.planner.policy = {.return_policy = true};
  MEDLEY_ASSIGN_OR_RETURN(const Problem training, Problem::Compile(request));
  MEDLEY_ASSIGN_OR_RETURN(const Candidate trained, planner.Solve(training, 1, budget));
  request.planner.policy = {.trained = trained.policy, .inference_only = true};
  MEDLEY_ASSIGN_OR_RETURN(const Problem inference, Problem::Compile(request));
  std::vector<double> seconds;
  for (int i = 0; i < 501; ++i) {
    const base::SteadyTime begin = clock.Steady();
    MEDLEY_RETURN_IF_ERROR(planner.Solve(inference, 1, budget).status());
    seconds.push_back(base::ToSeconds(clock.Steady() - begin));
  }
  std::printf("%-12s %2d layers %2d types  %-9s inference: median %.3f ms\n", request.model.name.c_str(),
              problem.layers(), problem.types(), std::string(planner.name()).c_str(), Median(seconds) * 1000);
  return absl::OkStatus();
}

absl::Status BenchPlanner(const Planner& planner, const Problem& problem, double optimum, int seeds) {
  const base::SystemClock clock;
  std::vector<double> above, seconds, cpu;
  for (int seed = 1; seed <= seeds; ++seed) {
    const base::SteadyTime begin = clock.Steady();
    const std::clock_t cpu_begin = std::clock();
    MEDLEY_ASSIGN_OR_RETURN(const Candidate solution, planner.Solve(problem, static_cast<uint64_t>(seed),
                                                                    Budget(clock, begin + base::FromSeconds(60), {})));
    seconds.push_back(base::ToSeconds(clock.Steady() - begin));
    cpu.push_back(static_cast<double>(std::clock() - cpu_begin) / CLOCKS_PER_SEC);
    above.push_back(solution.plan ? (solution.figures.usd / optimum - 1) * 100 : 1e9);
  }
  std::printf(
      "%-12s %2d layers %2d types  %-9s above optimum: median %7.3f %%, most %7.3f %%  seconds: "
      "median %.3f, "
      "most %.3f, processor %.3f\n",
      problem.request().model.name.c_str(), problem.layers(), problem.types(), std::string(planner.name()).c_str(),
      Median(above), *std::max_element(above.begin(), above.end()), Median(seconds),
      *std::max_element(seconds.begin(), seconds.end()), Median(cpu));
  std::fflush(stdout);
  return absl::OkStatus();
}

// Random problems with 14 to 16 layers whose optimum has at least 3 stages: harder than all real models here.
absl::Status BenchRandom(const Flags& flags, const Registry& registry, int types) {
  const base::SystemClock clock;
  int left = flags.random;
  for (uint64_t seed = 1; left > 0; ++seed) {
    model::PlanRequest request = RandomRequest(seed, {.most_layers = 16, .most_types = types, .most_limit = 64});
    if (request.model.layers.size() < 14 || static_cast<int>(request.resources.size()) < types) continue;
    request.planner = flags.options;
    MEDLEY_ASSIGN_OR_RETURN(const Problem problem, Problem::Compile(std::move(request)));
    MEDLEY_ASSIGN_OR_RETURN(
        const Candidate exact,
        registry.Find("exact", Supply::kUnits)->Solve(problem, 1, Budget(clock, base::SteadyTime::max(), {})));
    if (!exact.plan || exact.plan->stages.size() < 3) continue;
    --left;
    for (const std::string& name : flags.planners) {
      MEDLEY_RETURN_IF_ERROR(
          BenchPlanner(*registry.Find(name, Supply::kUnits), problem, exact.figures.usd, flags.seeds));
    }
  }
  return absl::OkStatus();
}

absl::Status Bench(const Flags& flags) {
  const base::SystemClock clock;
  const Registry registry = BuiltinPlanners();
  for (const std::string& name : flags.planners) {
    if (registry.Find(name, Supply::kUnits) == nullptr) return base::NotFound("planner {}", name);
  }
  for (const int types : flags.types) MEDLEY_RETURN_IF_ERROR(BenchRandom(flags, registry, types));
  for (const std::string& file : flags.files) {
    MEDLEY_ASSIGN_OR_RETURN(model::PlanRequest request, Read(file));
    request.planner = flags.options;
    for (const int types : flags.types) {
      MEDLEY_ASSIGN_OR_RETURN(const Problem problem, Problem::Compile(WithTypes(request, types, flags.variant)));
      MEDLEY_ASSIGN_OR_RETURN(
          const Candidate exact,
          registry.Find("exact", Supply::kUnits)->Solve(problem, 1, Budget(clock, base::SteadyTime::max(), {})));
      if (!exact.plan) return base::FailedPrecondition("{} with {} types has no plan", file, types);
      for (const std::string& name : flags.planners) {
        const Planner& planner = *registry.Find(name, Supply::kUnits);
        MEDLEY_RETURN_IF_ERROR(BenchPlanner(planner, problem, exact.figures.usd, flags.seeds));
        if (name.starts_with("rl-")) MEDLEY_RETURN_IF_ERROR(BenchInference(planner, problem));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace medley::sched

int main(int argc, char** argv) {
  CLI::App app("How near to the optimum the searching planners come");
  medley::sched::Flags flags;
  app.add_option("requests", flags.files);
  app.add_option("--random", flags.random);
  app.add_option("--planners", flags.planners)->delimiter(',');
  app.add_option("--types", flags.types)->delimiter(',');
  app.add_option("--seeds", flags.seeds);
  app.add_option("--variant", flags.variant, "seed of the types that are made up");
  // For the policies; other planners refuse them.
  for (const auto& [flag, option] : {std::pair{"--rounds", "rounds"},
                                     {"--hidden", "hiddenUnits"},
                                     {"--samples", "samplesPerRound"},
                                     {"--learning-rate", "learningRate"}}) {
    app.add_option_function<double>(
        flag, [&flags, name = std::string(option)](double value) { flags.options.options[name] = value; });
  }
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = medley::sched::Bench(flags);
  if (!status.ok()) std::fprintf(stderr, "search_bench: %s\n", medley::base::Message(status).c_str());
  return status.ok() ? 0 : 1;
}
