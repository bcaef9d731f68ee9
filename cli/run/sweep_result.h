// What the trials of a sweep have reached, as a table and as JSON. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/run/snapshot.h"
#include "cli/run/sweep_grid.h"

namespace medley::cli {

struct TrialResult {
  enum class Status { kWaiting, kRunning, kComplete, kDidNotComplete, kStopped };
  Trial trial;
  Status status = Status::kWaiting;
  std::optional<double> value;  // of the metric at its best evaluation
  int best_epoch = 0;           // complete passes over the data at that evaluation; 0: none
  double seconds = 0;           // since the trial was created
  std::string message;          // why it failed
};

// The metric by which trials are compared: `wanted` if it is given, else that of spec.training.earlyStopping, else the
// first of auc, accuracy, r2, mse, mae, logLoss that the evaluations have; "": none is known yet.
std::string SweepMetric(const std::string& wanted, const kube::Object& job, const Snapshot& view);

// Fills value, best_epoch and, for a job that is over, status and message.
void TakeResult(const Snapshot& view, const std::string& metric, TrialResult& result);

// Index of the best complete trial; nullopt: no complete trial has a value.
std::optional<size_t> BestTrial(const std::vector<TrialResult>& results, const std::string& metric);

// Best first, then those without a value in their order.
std::string SweepTable(const std::vector<TrialResult>& results, const std::vector<std::string>& names,
                       const std::string& metric);
kube::Json SweepJson(const std::vector<TrialResult>& results, const std::string& metric);

}  // namespace medley::cli
