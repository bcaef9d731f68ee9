// What planners answer in the same processor time on large questions:
//   anytime_bench [--layers 100,400] [--types 5,32] [--seconds 0.3,3] [--seeds 3] [--fill 0.9] [--planners ...]
// Prints a line for each question and planner: the cost over the least that any of them found, the proven gap, and the
// processor seconds. The clock that planners see is the processor time of their thread, so other work on the machine
// does not count.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <map>

#include "reproductions/heterps/heterps_planners.h"
#include "scheduler-service/planner/builtin.h"
#include "tests/unit/scheduler-service/planner/large_questions.h"

namespace medley::reproductions::heterps {
namespace {

using sched::AnswerInTime;
using sched::AskInTime;
using sched::LargeOptions;
using sched::Problem;
using sched::Registry;
using sched::Supply;

struct AnytimeFlags {
  std::vector<int> layers = {100, 400};
  std::vector<int> types = {5, 32};
  std::vector<double> seconds = {0.3, 3};
  std::vector<double> fill = {0.7, 0.95};
  std::vector<std::string> planners = {"auto", "greedy", "rl-lstm", "genetic", "bayesian"};
  int seeds = 2;
};

absl::Status BenchQuestion(const AnytimeFlags& flags, const Registry& registry, const LargeOptions& options,
                           uint64_t seed, double seconds, std::map<std::string, int>& worse) {
  MEDLEY_ASSIGN_OR_RETURN(const Problem problem, Problem::Compile(sched::LargeQuestion(seed, options)));
  std::map<std::string, AnswerInTime> answers;
  double best = sched::kInfinity;
  for (const std::string& name : flags.planners) {
    MEDLEY_ASSIGN_OR_RETURN(answers[name], AskInTime(*registry.Find(name, Supply::kUnits), problem, seconds));
    best = std::min(best, answers[name].usd);
  }
  for (const std::string& name : flags.planners) {
    const AnswerInTime& a = answers[name];
    std::printf(
        "%3d layers %2d types fill %.2f seed %llu %5.2f s  %-9s %10.4g USD (+%.3f %%) bound %10.4g %s  took %.3f s\n",
        options.layers, options.types, options.fill, static_cast<unsigned long long>(seed), seconds, name.c_str(),
        a.usd, (a.usd / best - 1) * 100, a.lower_bound, a.complete ? "complete" : "", a.seconds);
    if (a.usd < answers["auto"].usd * (1 - 1e-9)) ++worse[name];
  }
  std::fflush(stdout);
  return absl::OkStatus();
}

absl::Status Bench(const AnytimeFlags& flags) {
  Registry registry = sched::BuiltinPlanners();
  registry.Add(MakeGenetic());
  registry.Add(MakeBayesian());
  std::map<std::string, int> worse;
  int questions = 0;
  for (const int layers : flags.layers) {
    for (const int types : flags.types) {
      for (const double fill : flags.fill) {
        for (const double seconds : flags.seconds) {
          for (int seed = 1; seed <= flags.seeds; ++seed, ++questions) {
            MEDLEY_RETURN_IF_ERROR(
                BenchQuestion(flags, registry, {layers, types, fill}, static_cast<uint64_t>(seed), seconds, worse));
          }
        }
      }
    }
  }
  std::printf("%d questions; cheaper than auto:", questions);
  for (const std::string& name : flags.planners) std::printf(" %s %d", name.c_str(), worse[name]);
  std::printf("\n");
  return absl::OkStatus();
}

}  // namespace
}  // namespace medley::reproductions::heterps

int main(int argc, char** argv) {
  CLI::App app("What planners answer in the same time on large questions");
  medley::reproductions::heterps::AnytimeFlags flags;
  app.add_option("--layers", flags.layers)->delimiter(',');
  app.add_option("--types", flags.types)->delimiter(',');
  app.add_option("--seconds", flags.seconds)->delimiter(',');
  app.add_option("--fill", flags.fill)->delimiter(',');
  app.add_option("--planners", flags.planners)->delimiter(',');
  app.add_option("--seeds", flags.seeds);
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = medley::reproductions::heterps::Bench(flags);
  if (!status.ok()) std::fprintf(stderr, "anytime_bench: %s\n", medley::base::Message(status).c_str());
  return status.ok() ? 0 : 1;
}
