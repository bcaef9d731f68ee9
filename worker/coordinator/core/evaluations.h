// The evaluations: between two steps, and at the end.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "medley/job/v1/coordinator.pb.h"
#include "medley/job/v1/journal.pb.h"
#include "worker/coordinator/core/learning_curve.h"
#include "worker/scores/scores.h"

namespace medley::worker {

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

struct EvaluationState {
  explicit EvaluationState(const CurveOptions& options) : curve(options) {}

  std::optional<PendingEvaluation> pending;
  bool warned_of_calibration = false;
  std::optional<job::v1::TestRecord> tested;  // of test data that choose no model
  LearningCurve curve;
  std::optional<job::v1::FittedTransform> transform;  // of the training data, once an evaluation has reported it
  std::map<std::string, double> metrics;              // of the last evaluation; at the end, of the exported model
};

}  // namespace medley::worker
