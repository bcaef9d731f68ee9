// What each kind of decision gains alone, and all together.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "scheduler-service/devices/problem.h"

namespace medley::reproductions::heterog {

struct Ablation {
  double baseline = 0;  // seconds of the best of the four baselines, first in, first out
  struct Row {
    std::string name;
    double seconds = 0;
  };
  std::vector<Row> rows;
};

// Seconds of the best plans that decide only
//   order: one of the four baselines, with any order: what our order gains them
//   reductions: servers or allreduce for each group, with the shares of the best baseline
//   replicas: equal shares or shares by power for each group, reduced as in the best baseline
//   placement: one device, or as in the best baseline, for each group
//   all: any of these
//   and balanced: then balanced shares too (BalanceShares)
//   and next step: then reductions during the next step too (OverlapBest)
// `reductions`, `replicas` and `placement` keep the baselines' order. Each search has `calls` simulations, begins with
// the best baseline and may choose the size of buckets, as the baselines may.
// No rows: no baseline fits. Errors: those of the simulator.
absl::StatusOr<Ablation> Ablate(const sched::DeviceProblem& problem, int most_groups, int64_t calls);

}  // namespace medley::reproductions::heterog
