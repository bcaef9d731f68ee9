#include "worker/coordinator/core/learning_curve.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "common/model/task.h"

namespace medley::worker {
namespace {

// More than a rollback to a checkpoint is likely to cross. An older best value would otherwise be forgotten.
constexpr size_t kKept = 256;

int64_t StepsPerEpoch(const Ledger& ledger) { return ledger.total_steps() / ledger.epochs(); }

}  // namespace

bool LearningCurve::IsDue(const Ledger& ledger, int64_t step) const {
  if (step <= 0 || step >= ledger.total_steps()) return false;
  if (!records_.empty() && records_.back().step() >= step) return false;
  if (step == without_result_) return false;
  const bool steps = options_.every_steps > 0 && step % options_.every_steps == 0;
  return steps || (options_.every_epochs > 0 && step % (StepsPerEpoch(ledger) * options_.every_epochs) == 0);
}

void LearningCurve::AddLoss(double sum, int64_t samples) {
  loss_sum_ += sum;
  loss_samples_ += samples;
  epoch_sum_ += sum;
  epoch_samples_ += samples;
}

std::optional<double> LearningCurve::EndEpoch() {
  const int64_t samples = std::exchange(epoch_samples_, 0);
  const double sum = std::exchange(epoch_sum_, 0);
  return samples > 0 ? std::optional(sum / static_cast<double>(samples)) : std::nullopt;
}

const job::v1::EvaluationRecord& LearningCurve::Add(const Ledger& ledger, int64_t step,
                                                    std::map<std::string, double> metrics, base::WallTime now) {
  job::v1::EvaluationRecord record;
  record.set_step(step);
  record.set_epochs(static_cast<int32_t>(step / StepsPerEpoch(ledger)));
  for (const auto& [name, value] : metrics) (*record.mutable_metrics())[name] = value;
  if (loss_samples_ > 0) record.set_loss(loss_sum_ / static_cast<double>(loss_samples_));
  const int64_t nanos = std::chrono::duration_cast<base::nanoseconds>(now.time_since_epoch()).count();
  record.mutable_at()->set_seconds(nanos / 1'000'000'000);
  record.mutable_at()->set_nanos(static_cast<int32_t>(nanos % 1'000'000'000));
  Judge(records_.empty() ? nullptr : &records_.back(), record);
  loss_sum_ = 0;
  loss_samples_ = 0;
  records_.push_back(std::move(record));
  if (records_.size() > kKept) records_.erase(records_.begin());
  return records_.back();
}

void LearningCurve::Judge(const job::v1::EvaluationRecord* before, job::v1::EvaluationRecord& record) const {
  if (!options_.early_stopping) return;
  const EarlyStopping& rule = *options_.early_stopping;
  if (before != nullptr) {
    record.set_best(before->best());
    record.set_best_step(before->best_step());
  }
  record.set_without_improvement((before == nullptr ? 0 : before->without_improvement()) + 1);
  const auto found = record.metrics().find(rule.metric);
  if (found == record.metrics().end()) return;
  const double gain =
      model::ImprovesByFalling(rule.metric) ? record.best() - found->second : found->second - record.best();
  if (record.best_step() > 0 && !(gain > rule.min_delta)) return;
  record.set_best(found->second);
  record.set_best_step(record.step());
  record.set_without_improvement(0);
}

void LearningCurve::RollBack(int64_t step) {
  while (!records_.empty() && records_.back().step() > step) records_.pop_back();
  loss_sum_ = epoch_sum_ = 0;
  loss_samples_ = epoch_samples_ = 0;
}

std::optional<std::string> LearningCurve::StopsAt(int64_t step) const {
  const job::v1::EvaluationRecord* record = At(step);
  if (!options_.early_stopping || record == nullptr) return std::nullopt;
  const EarlyStopping& rule = *options_.early_stopping;
  if (record->without_improvement() < rule.patience) return std::nullopt;
  const std::string best = record->best_step() == 0 ? "it has no value on these test data"
                                                    : fmt::format("its best value is {:.6g}, of step {}",
                                                                  record->best(), record->best_step());
  return fmt::format("stopped early at step {}: {} has not improved by more than {:g} in {} evaluations in a row; {}",
                     step, rule.metric, rule.min_delta, record->without_improvement(), best);
}

const job::v1::EvaluationRecord* LearningCurve::At(int64_t step) const {
  return records_.empty() || records_.back().step() != step ? nullptr : &records_.back();
}

}  // namespace medley::worker
