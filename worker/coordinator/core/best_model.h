// Which of the models that were evaluated is the best. Pure.
#pragma once

#include <string>

#include "medley/job/v1/coordinator.pb.h"

namespace medley::worker {

// How the exported model is chosen.
struct SelectionOptions {
  std::string metric;       // a key of MetricsOf (worker/scores/scores.h); empty: the last model is exported
  bool validation = false;  // there are validation data: they choose, and the test data are evaluated once, at the end
  bool test = false;        // there are test data; without validation data these choose

  job::v1::EvaluationData data() const {
    return validation ? job::v1::EVALUATION_DATA_VALIDATION : job::v1::EVALUATION_DATA_TEST;
  }
  bool separate_test() const { return validation && test; }
};

// Whether the evaluated model is better than `best` (null: there is none). Equal values are not better, and a value
// that is absent or no number never is.
bool IsBetter(const std::string& metric, const job::v1::EvaluationRecord& record, const job::v1::BestModel* best);

job::v1::BestModel BestOf(const SelectionOptions& selection, const job::v1::EvaluationRecord& record);

}  // namespace medley::worker
