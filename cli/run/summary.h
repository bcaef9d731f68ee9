// Summarises a finished run and checks it against the scenario's expectations. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/run/scenario.h"
#include "cli/run/snapshot.h"

namespace medley::cli {

struct SamplePoint {
  double seconds = 0;  // since the run started
  int64_t samples = 0;
  int64_t generation = 0;           // in force
  double expected_throughput = 0;   // samples/s, as the plan estimates
  double simulated_throughput = 0;  // samples/s in simulated time; 0: not simulated
  bool whole = true;                // every member of the plan trains, and no other plan is being prepared
};

struct RunRecord {
  Snapshot last;
  std::vector<SamplePoint> points;             // in order of time
  std::vector<ops::RescaleStatus> rescales;    // switches to another plan, in order
  std::vector<ops::RescaleStatus> recoveries;  // switches after a loss
  std::vector<ops::RescaleStatus> returns;     // switches because a member returned or left
  int kills = 0;                               // number of pods that the scenario killed
  bool nothing_to_move_to = false;             // no goal has another plan after the scenario's change of prices
  double seconds = 0;
};

struct Summary {
  std::vector<std::string> lines;
  std::vector<std::string> failures;  // sentences; empty: all expectations are met
};

// What a plan promised and what was trained in a generation that runs the whole plan.
struct PlanThroughput {
  int64_t generation = 0;
  double expected = 0;   // samples/s
  double simulated = 0;  // samples/s; 0: not simulated
  double measured = 0;   // samples/s
};

// One entry for each whole generation that was seen to train for 5 s or longer, in order: the status is read about
// twice a second, so a shorter time would be measured with an error of tens of percents. Measured from the first growth
// of the number of samples to its last, so waiting and evaluation do not count.
std::vector<PlanThroughput> ThroughputOfPlans(const std::vector<SamplePoint>& points);

Summary Summarise(const RunRecord& record, const Scenario& scenario);

}  // namespace medley::cli
