// medley simulate --traces FOLDER FILE: a job with a deadline on recorded spot capacity, in simulated time.
#pragma once

#include <absl/status/status.h>

#include <string>

#include "cli/plan_input.h"

namespace medley::cli {

struct TraceFlags {
  std::string folder;  // empty: no traces
  std::string work;    // a duration; empty: by the planner, with --profile
  int units = 0;       // 0: 1 with `work`, else the plan's
  std::string start = "12m";
  std::string notice = "30s";
  std::string save = "10s";
  std::string checkpoint_every = "10m";
  std::string checkpoint_size = "0";
  std::string longest_gap = "0s";
  std::string at;            // RFC 3339; empty: the begin of the record
  double on_demand_usd = 0;  // per unit and hour; 0: of the pool or of the record
};

void AddTraceFlags(CLI::App& command, TraceFlags& flags);

// Errors name the file and what is wrong with it, or the flag.
absl::Status SimulateOnTraces(const PlanFlags& plan, const TraceFlags& flags);

}  // namespace medley::cli
