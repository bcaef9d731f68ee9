// medley plan --pareto: prints the Pareto front of cost and throughput as a table, JSON or YAML, and draws it.
#pragma once

#include <string>

#include "cli/plan_input.h"

namespace medley::cli {

struct ParetoFlags {
  bool wanted = false;
  int points = 0;   // 0: the default of MakePareto
  std::string svg;  // a file to write, or empty
};

// Returns the exit status: 0 done, 1 failed, 2 no feasible plan.
int RunPareto(const PlanFlags& flags, const ParetoFlags& pareto);

}  // namespace medley::cli
