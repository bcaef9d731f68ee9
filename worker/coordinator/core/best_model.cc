#include "worker/coordinator/core/best_model.h"

#include <cmath>

#include "common/model/task.h"

namespace medley::worker {

bool IsBetter(const std::string& metric, const job::v1::EvaluationRecord& record, const job::v1::BestModel* best) {
  const auto value = record.metrics().find(metric);
  if (value == record.metrics().end() || std::isnan(value->second)) return false;
  if (best == nullptr) return true;
  return model::ImprovesByFalling(metric) ? value->second < best->value() : value->second > best->value();
}

job::v1::BestModel BestOf(const SelectionOptions& selection, const job::v1::EvaluationRecord& record) {
  job::v1::BestModel best;
  best.set_step(record.step());
  best.set_epochs(record.epochs());
  best.set_metric(selection.metric);
  const auto value = record.metrics().find(selection.metric);
  if (value != record.metrics().end()) best.set_value(value->second);
  best.set_data(selection.data());
  *best.mutable_metrics() = record.metrics();
  return best;
}

}  // namespace medley::worker
