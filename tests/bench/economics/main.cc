// economics_bench SCENARIO.yaml...: replays recorded prices for every strategy and prints a JSON document to stdout.
// Run it in the root of the repository. `tests/bench/run economics` makes a table and a plot from its output.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "common/base/status.h"
#include "tests/bench/economics/scenario.h"

namespace medley::bench {
namespace {

using nlohmann::json;

std::vector<Strategy> Strategies() {
  return {{.name = "Medley: exact plan, replanned at published changes"},
          {.name = "the first plan, kept", .replan = false},
          {.name = "on-demand only, replanned", .on_demand_only = true},
          {.name = "cheapest single type, chosen again at every change", .single_type = true, .follow_always = true},
          {.name = "exact plan, followed at every change", .follow_always = true},
          {.name = "bound: every change followed, moves cost nothing", .follow_always = true, .free_moves = true}};
}

json ToJson(const Outcome& o) {
  json steps = json::array();
  for (const Outcome::Step& step : o.steps) steps.push_back({step.time, step.usd_per_hour, step.plan});
  return {{"strategy", o.strategy},
          {"usd", o.usd},
          {"hours", o.hours},
          {"plans", o.plans},
          {"moves", o.moves},
          {"publications", o.publications},
          {"shareAboveFloor", o.share_above_floor},
          {"steps", steps}};
}

int Main(int argc, char** argv) {
  json out = json::array();
  for (int i = 1; i < argc; ++i) {
    const auto scenario = ReadScenario(".", argv[i]);
    if (!scenario.ok()) {
      std::fprintf(stderr, "economics_bench: %s\n", base::Message(scenario.status()).c_str());
      return 1;
    }
    json outcomes = json::array();
    for (const Strategy& strategy : Strategies()) {
      const auto outcome = Replay(*scenario, strategy);
      if (!outcome.ok()) {
        std::fprintf(stderr, "economics_bench: %s: %s\n", argv[i], base::Message(outcome.status()).c_str());
        return 1;
      }
      outcomes.push_back(ToJson(*outcome));
    }
    out.push_back({{"scenario", scenario->name},
                   {"days", (scenario->end - scenario->begin) / 86400},
                   {"changes", scenario->changes.size()},
                   {"minThroughput", scenario->request.constraints.min_throughput},
                   {"outcomes", outcomes}});
  }
  std::printf("%s\n", out.dump().c_str());
  return 0;
}

}  // namespace
}  // namespace medley::bench

int main(int argc, char** argv) { return medley::bench::Main(argc, argv); }
