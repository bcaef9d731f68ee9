// The evaluations: between two steps, and at the end.
//
// Data in: scores of members. Data out: lines of metrics.jsonl. It decides what a model's metrics are.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "medley/job/v1/coordinator.pb.h"
#include "medley/job/v1/journal.pb.h"
#include "worker/coordinator/core/effects.h"
#include "worker/coordinator/core/learning_curve.h"
#include "worker/scores/scores.h"

namespace medley::worker {

struct CoreState;

// An evaluation that the trainers run.
struct PendingEvaluation {
  bool AllDone() const;
  bool last = false;  // at the end
  job::v1::EvaluationData data = job::v1::EVALUATION_DATA_TEST;
  bool recorded = false;             // its scores
  std::map<std::string, bool> done;  // by member
  base::SteadyTime deadline{};
  ScoreSums scores;
  std::optional<job::v1::FittedTransform> transform;
};

// The trainers evaluate the state that they hold.
struct EvaluationOrder {
  bool last = false;  // at the end
  job::v1::EvaluationData data = job::v1::EVALUATION_DATA_TEST;
};

struct EvaluationState {
  explicit EvaluationState(const CurveOptions& options) : curve(options) {}

  std::optional<PendingEvaluation> pending;
  bool warned_of_calibration = false;
  std::optional<job::v1::TestRecord> tested;  // of test data that choose no model
  LearningCurve curve;
  std::optional<job::v1::FittedTransform> transform;  // of the training data, once an evaluation has reported it
  std::map<std::string, double> metrics;              // of the last evaluation; at the end, of the exported model
};

namespace evaluations {

// Whether one begins now, between two steps.
bool IsDue(const CoreState& view);
// Whether `member` has still to answer the one that is pending.
bool Awaits(const EvaluationState& state, const std::string& member);
// Whether the members have made no progress for too long.
Request CheckDeadline(const CoreState& view, base::SteadyTime now);

void Restore(EvaluationState& own, const job::v1::CoordinatorState& journal);
void Start(EvaluationState& own, const CoreState& view, const EvaluationOrder& request, base::SteadyTime now,
           Effects& out);
void Drop(EvaluationState& own);  // the members stop, or it is over
void OnEvaluating(EvaluationState& own, const CoreState& view, const std::string& member,
                  const job::v1::Evaluating& progress, base::SteadyTime now);
void OnEvaluated(EvaluationState& own, const CoreState& view, const std::string& member, const job::v1::Evaluated& part,
                 base::SteadyTime now);
// Records the scores of the pending one, once. Returns whether they are to be journaled at once: those of test data.
bool Record(EvaluationState& own, const CoreState& view, base::WallTime now, Effects& out);
void AddLoss(EvaluationState& own, double sum, int64_t samples);
void EndEpoch(EvaluationState& own, const CoreState& view, const StepRange& last, Effects& out);
void RollBack(EvaluationState& own, int64_t step);
void Show(EvaluationState& own, std::map<std::string, double> metrics);

}  // namespace evaluations
}  // namespace medley::worker
