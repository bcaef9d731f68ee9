// What `medley simulate --traces` prints: the course of a job, its total, and other policies on the same record.
#pragma once

#include <absl/status/statusor.h>

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/traces/world.h"

namespace medley::cli::traces {

struct Compared {
  std::string name;  // "the optimum, which knows the future"
  Outcome outcome;
};

struct TraceReport {
  std::string job;
  TraceJob run;
  std::string trace;
  base::WallTime begin{};  // of the job
  Outcome outcome;
  std::vector<Compared> compared;
};

// Runs Medley's decisions, and the policies that it is compared with. A policy that cannot be run (the optimum of a
// very long record) is left out. Errors: those of Simulate.
absl::StatusOr<TraceReport> RunOnTrace(const Trace& trace, const Egress& egress, const TraceJob& job, std::string name);

std::string TraceText(const TraceReport& report);
nlohmann::ordered_json TraceJson(const TraceReport& report);

}  // namespace medley::cli::traces
