// Figure 11 of HeterPS: what each scheduler's plan costs for the models that can be trained (examples/zoo), by the cost
// model and by the simulator.
#pragma once

#include <absl/status/status.h>

#include "tests/bench/planner_bench_parts.h"

namespace medley::reproductions::heterps {

// Appends a row for each model, goal and planner to `out`. Two sets of pools with unlike quotas: cores and V100s as in
// the paper's section 6, and three kinds of CPU. `registry` has the planners of the paper.
absl::Status Figure11(const bench::PlannerBenchOptions& options, const sched::Registry& registry, bench::Json& out);

}  // namespace medley::reproductions::heterps
