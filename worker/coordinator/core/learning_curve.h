// The results of the evaluations during a training, and the decision to stop early. Not thread-safe; owned by the core.
//
// When an evaluation is due, and whether training stops, follow from the ledger and the records alone. The records are
// journaled and rolled back with the ledger, so restarts and recoveries do not change the decisions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "medley/job/v1/coordinator.pb.h"
#include "worker/coordinator/core/ledger.h"

namespace medley::worker {

// Stop when a metric has not improved by more than min_delta in `patience` evaluations in a row.
struct EarlyStopping {
  std::string metric;  // a key of MetricsOf (worker/scores/scores.h)
  int patience = 1;    // >= 1
  double min_delta = 0;
};

// When models are evaluated before the end. Both numbers 0: never.
struct CurveOptions {
  int64_t every_steps = 0;
  int32_t every_epochs = 0;
  std::optional<EarlyStopping> early_stopping;
};

class LearningCurve {
 public:
  explicit LearningCurve(CurveOptions options) : options_(std::move(options)) {}
  void Restore(std::vector<job::v1::EvaluationRecord> records) { records_ = std::move(records); }

  // Whether the model is to be evaluated at `step`, before the step after it is leased. False at the last step,
  // because the evaluation at the end follows, and at steps that have been evaluated.
  bool IsDue(const Ledger& ledger, int64_t step) const;
  // The training loss of a committed step.
  void AddLoss(double sum, int64_t samples);
  // The mean training loss of the data epoch whose last step was committed, and begins the next epoch. After a rollback
  // or a restart of the coordinator it is that of the steps since then. nullopt: none is known.
  std::optional<double> EndEpoch();
  // The result at `step`, which has not been evaluated yet.
  const job::v1::EvaluationRecord& Add(const Ledger& ledger, int64_t step, std::map<std::string, double> metrics,
                                       base::WallTime now);
  // The evaluation at `step` had no result, because the data have no rows. It is not due again.
  void AddNothing(int64_t step) { without_result_ = step; }
  bool Knows(int64_t step) const { return At(step) != nullptr || without_result_ == step; }
  // Forgets the results after `step`, and the losses since the last evaluation.
  void RollBack(int64_t step);

  // Why training ends at `step`, as a sentence; nullopt: it goes on.
  std::optional<std::string> StopsAt(int64_t step) const;
  const job::v1::EvaluationRecord* At(int64_t step) const;  // null: not evaluated
  const std::vector<job::v1::EvaluationRecord>& records() const { return records_; }

 private:
  void Judge(const job::v1::EvaluationRecord* before, job::v1::EvaluationRecord& record) const;

  const CurveOptions options_;
  std::vector<job::v1::EvaluationRecord> records_;  // in the order of their steps, at most 256
  int64_t without_result_ = 0;
  double loss_sum_ = 0;
  int64_t loss_samples_ = 0;
  double epoch_sum_ = 0;
  int64_t epoch_samples_ = 0;
};

}  // namespace medley::worker
