// The scenario of a local run: price changes, processes to kill, and the expected results.
//
// A scenario is a file in the folder of the manifests. The TrainingJob's annotation `run.medley.dev/scenario` names it.
// Only `medley run` reads it; in a cluster the annotation has no effect. Format (YAML):
//
//   prices: adult.prices.yaml            # the price file at the start, in the same folder
//   goalPercent: 40                      # minThroughput, as a percentage of what the offered machines reach at most
//   mixSavesPercent: 20                  # instead, a minThroughput for which a mix of pools is that much cheaper than
//                                        # each single pool (mix_goal.h); where there is none, goalPercent counts
//   steps:                               # in order; each waits until the job reaches its progress
//   - {atPercent: 30, say: "...", prices: adult.prices-2.yaml}
//   - {atPercent: 65, say: "...", kill: {role: trainer, stage: 1}}
//   expect: {auc: 0.915, logLoss: 0.30, rescales: 1, recoveries: 1}   # also accuracy, mse, mae, r2
//
// Immutable values; parsing is pure.
#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace medley::cli {

struct KillStep {
  std::string role;  // trainer, server, coordinator
  int stage = -1;    // stage of the trainer; -1: any
};

struct ScenarioStep {
  double at_percent = 0;  // of all samples
  std::string say;        // message to print
  std::string prices;     // name of the new price file; empty: prices do not change
  std::optional<KillStep> kill;
};

// The expected results, which the summary checks. A missing field is not checked.
struct Expectations {
  // By the name in the status, as logLoss: at most for those that improve by falling, at least for others.
  std::map<std::string, double> metrics;
  int rescales = 0;    // at least
  int recoveries = 0;  // at least
};

struct Scenario {
  std::string prices;            // name of the price file; empty: no price feed
  double goal_percent = 0;       // in (0, 100]; 0: the job's own goal
  double mix_saves_percent = 0;  // in (0, 100), with goal_percent; 0: goal_percent counts
  std::vector<ScenarioStep> steps;
  Expectations expect;
};

// Errors: InvalidArgument with the field's path, also for an unknown field.
absl::StatusOr<Scenario> ParseScenario(std::string_view yaml);

}  // namespace medley::cli
