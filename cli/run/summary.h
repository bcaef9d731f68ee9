// Summarises a finished run and checks it against the scenario's expectations. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/run/scenario.h"
#include "cli/run/snapshot.h"

namespace medley::cli {

struct SamplePoint {
  double seconds = 0;  // since the start of the run
  int64_t samples = 0;
  int64_t generation = 0;
};

struct RunRecord {
  Snapshot last;
  std::vector<SamplePoint> points;             // in order of time
  std::vector<ops::RescaleStatus> rescales;    // switches to another plan, in order
  std::vector<ops::RescaleStatus> recoveries;  // switches after a loss
  std::vector<ops::RescaleStatus> returns;     // switches because a member returned or left
  int kills = 0;                               // number of pods that the scenario killed
  double seconds = 0;
};

struct Summary {
  std::vector<std::string> lines;
  std::vector<std::string> failures;  // sentences; empty: all expectations are met
};

// Mean samples/s between two times of the record; 0 when nothing was trained between them.
double Throughput(const std::vector<SamplePoint>& points, double from_seconds, double to_seconds);

Summary Summarise(const RunRecord& record, const Scenario& scenario);

}  // namespace medley::cli
