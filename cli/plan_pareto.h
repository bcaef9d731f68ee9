// medley plan --pareto: the front of cost and throughput as a table, JSON, YAML and a drawing.
#pragma once

#include <string>

#include "cli/plan_input.h"

namespace medley::cli {

struct ParetoFlags {
  bool wanted = false;
  int points = 0;   // 0: the default of MakePareto
  std::string svg;  // a file to write, or empty
};

// The exit status: 0 a front, 1 failed, 2 infeasible.
int RunPareto(const PlanFlags& flags, const ParetoFlags& pareto);

}  // namespace medley::cli
