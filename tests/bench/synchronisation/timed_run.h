// Trains a job of real processes and records when each step was committed. Evaluations do not count as time.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "tests/integration/worker/job_harness.h"

namespace medley::bench {

struct Timeline {
  // Index 0 is the first step. Steps since the last agreement are committed together with it.
  std::vector<double> seconds;  // of training since RunSettings::warm_up; negative before
  std::vector<double> losses;
  std::map<int64_t, double> accuracies;  // by step, of the test data
  int64_t agreements = 0;
  double ratio = 0;     // of synchronisation to computation, as the coordinator reports it last; 0: not measured
  double fraction = 0;  // of the steps, likewise
  int left_out = 0;     // most members that stood by at once
  bool complete = false;

  double now() const { return seconds.empty() ? 0 : seconds.back(); }
  // Seconds until the mean loss of 50 steps was at most `loss`; negative: it never was.
  double SecondsToLoss(double loss) const;
  // Likewise, linear between two evaluations.
  double SecondsToAccuracy(double accuracy) const;
  double best_accuracy() const;
};

struct RunSettings {
  worker::JobOptions options;
  worker::JobShape shape;
  int64_t warm_up = 10;                       // steps before the time begins
  double most_seconds = 60;                   // of training; the run ends then
  std::function<bool(const Timeline&)> done;  // the run ends before; optional
  // Called some hundred times a second once the time has begun, with the seconds since; optional.
  std::function<void(worker::JobHarness&, double)> during;
  std::function<void()> ended;  // called once, before the job is deleted, also after an error; optional
};

// Errors: FailedPrecondition when the job fails, DeadlineExceeded when it makes no progress.
absl::StatusOr<Timeline> Run(const RunSettings& settings);

}  // namespace medley::bench
