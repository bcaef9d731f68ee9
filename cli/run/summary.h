// What a finished run was, and whether it is what the scenario expects. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/run/scenario.h"
#include "cli/run/snapshot.h"

namespace medley::cli {

struct SamplePoint {
  double seconds = 0;  // since the run began
  int64_t samples = 0;
  int64_t generation = 0;
};

struct RunRecord {
  Snapshot last;
  std::vector<SamplePoint> points;             // in time order
  std::vector<ops::RescaleStatus> rescales;    // planned moves, in order
  std::vector<ops::RescaleStatus> recoveries;  // after a loss
  std::vector<ops::RescaleStatus> returns;     // of members that were lost
  int kills = 0;                               // of processes by the scenario
  double seconds = 0;
};

struct Summary {
  std::vector<std::string> lines;
  std::vector<std::string> failures;  // empty: everything holds
};

// Mean samples/s between two moments of the record; 0 when nothing was trained between them.
double Throughput(const std::vector<SamplePoint>& points, double from_seconds, double to_seconds);

Summary Summarise(const RunRecord& record, const Scenario& scenario);

}  // namespace medley::cli
