// What happens around a local run: prices that move, processes that die, and what the result must
// be.
//
// A scenario is a file beside the manifests, named by the TrainingJob's annotation
// `run.medley.dev/scenario`. `medley run` alone reads it; a cluster ignores the annotation. Format
// (YAML):
//
//   prices: adult.prices.yaml            # the price feed at the start, a file beside this one
//   steps:                               # in order; each waits for its progress
//   - {atPercent: 30, say: "...", prices: adult.prices-2.yaml}
//   - {atPercent: 65, say: "...", kill: {role: trainer, stage: 1}}
//   expect: {auc: 0.915, logLoss: 0.30, rescales: 1, recoveries: 1}
//
// Immutable values; parsing is pure.
#pragma once

#include <absl/status/statusor.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace medley::cli {

struct KillStep {
  std::string role;  // trainer, server, coordinator
  int stage = -1;    // trainers: -1 means any
};

struct ScenarioStep {
  double at_percent = 0;  // of the samples
  std::string say;
  std::string prices;  // file name; empty: prices stay
  std::optional<KillStep> kill;
};

// What the summary checks; a missing field is not checked.
struct Expectations {
  std::optional<double> auc;       // at least
  std::optional<double> log_loss;  // at most
  int rescales = 0;                // at least
  int recoveries = 0;              // at least
};

struct Scenario {
  std::string prices;  // file name; empty: no feed
  std::vector<ScenarioStep> steps;
  Expectations expect;
};

// Errors: InvalidArgument with the field's path, for an unknown field as well.
absl::StatusOr<Scenario> ParseScenario(std::string_view yaml);

}  // namespace medley::cli
