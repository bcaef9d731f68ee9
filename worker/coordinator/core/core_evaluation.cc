// CoordinatorCore: evaluations, between two steps and at the end.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "worker/coordinator/core/core.h"

namespace medley::worker {
namespace {

std::string Describe(const Ledger& ledger, const job::v1::EvaluationRecord& record) {
  std::string text = fmt::format("evaluated at step {} of {}, epoch {}/{}:", record.step(), ledger.total_steps(),
                                 record.epochs(), ledger.epochs());
  const std::map<std::string, double> metrics(record.metrics().begin(), record.metrics().end());  // sorted by name
  for (const auto& [name, value] : metrics) text += fmt::format(" {} {:.6g},", name, value);
  if (record.has_loss()) return text + fmt::format(" training loss {:.6g}", record.loss());
  text.pop_back();
  return text;
}

ScoreSums FromProto(const job::v1::Evaluated& part) {
  ScoreSums scores{.samples = part.samples(), .sums = {part.sums().begin(), part.sums().end()}, .histograms = {}};
  scores.weight = part.has_weight() ? part.weight() : static_cast<double>(part.samples());
  scores.classes = {{part.right().begin(), part.right().end()},
                    {part.predicted().begin(), part.predicted().end()},
                    {part.actual().begin(), part.actual().end()}};
  for (const job::v1::ScoreHistogram& histogram : part.histograms()) {
    scores.histograms.push_back({{histogram.positives().begin(), histogram.positives().end()},
                                 {histogram.negatives().begin(), histogram.negatives().end()}});
  }
  return scores;
}

}  // namespace

bool PendingEvaluation::AllDone() const {
  return std::all_of(done.begin(), done.end(), [](const auto& at) { return at.second; });
}

bool CoordinatorCore::AdvanceEvaluation(Instant now) {
  if (over() || mode_ != Mode::kTraining) return false;
  if (evaluation_) {
    if (!evaluation_->last && evaluation_->AllDone()) {
      RecordScores(now);
      EndEvaluation(now);
      Journal(now);  // before a lease depends on it
      return KeepingBest() && AdvanceBest(now);
    }
    return !evaluation_->last;
  }
  if (KeepingBest() && AdvanceBest(now)) return true;
  const int64_t step = ledger_->committed();
  if (suspending_ || successor_ || step != ledger_->leased() || !curve_.IsDue(*ledger_, step)) return false;
  if (next_ && AllWarmed()) return false;  // the switch comes first
  StartEvaluation(false, options_.selection.data(), now);
  return true;
}

// Whether the best model is kept before training goes on. At the end it is saved anyway.
bool CoordinatorCore::KeepingBest() const { return !suspending_ && !successor_ && !AllCommitted(); }

void CoordinatorCore::StartEvaluation(bool last, job::v1::EvaluationData data, Instant now) {
  PendingEvaluation& pending = evaluation_.emplace();
  pending.last = last;
  pending.data = data;
  pending.deadline = now.steady + options_.evaluate_timeout;
  cost_.Pause();
  const int64_t step = StateStep();
  job::v1::SessionResponse message;
  message.mutable_evaluate()->set_generation(active_->generation);
  message.mutable_evaluate()->set_step(step);
  const bool chooses = data == options_.selection.data();
  message.mutable_evaluate()->set_only_transform(chooses && curve_.Knows(ledger_->committed()));
  message.mutable_evaluate()->set_data(data);
  for (const auto& [name, member] : active_->members) {
    pending.done[name] = false;
    Send(member.peer, message);
  }
}

void CoordinatorCore::RecordScores(Instant now) {
  if (std::exchange(evaluation_->recorded, true)) return;
  if (evaluation_->transform) transform_ = std::move(evaluation_->transform);
  std::map<std::string, double> metrics = MetricsOf(evaluation_->scores);
  if (evaluation_->data != options_.selection.data()) return RecordTest(metrics, now);
  const int64_t step = ledger_->committed();
  if (curve_.At(step) != nullptr) return;
  if (metrics.empty()) return curve_.AddNothing(step);
  if (options_.selection.validation) {
    auto samples = metrics.extract("test_samples");
    samples.key() = "validation_samples";
    metrics.insert(std::move(samples));
  }
  const job::v1::EvaluationRecord& record = curve_.Add(*ledger_, step, metrics, now.wall);
  commands_.push_back(EvaluationCommand{record, active_->generation});
  Log(false, Describe(*ledger_, record));
  WarnOfCalibration(metrics);
  metrics_ = metrics;
}

// Once: the weights stay what they are.
void CoordinatorCore::WarnOfCalibration(const std::map<std::string, double>& metrics) {
  const auto error = metrics.find("calibrationError");
  if (!options_.weighs_classes || error == metrics.end() || error->second <= kPoorCalibration) return;
  if (std::exchange(warned_of_calibration_, true)) return;
  Log(true, fmt::format("probabilities differ from the rates of positives by {:.2f} on average, because "
                        "spec.training.classWeights shift them: use the order of the predictions, not their size",
                        error->second));
}

// The test data choose no model: they are seen once, by the exported one.
void CoordinatorCore::RecordTest(const std::map<std::string, double>& metrics, Instant now) {
  tested_.emplace().set_step(StateStep());
  tested_->mutable_metrics()->insert(metrics.begin(), metrics.end());
  std::string text;
  for (const auto& [name, value] : metrics) text += fmt::format(" {} {:.6g},", name, value);
  if (!text.empty()) text.pop_back();
  Log(false, fmt::format("the exported model, of step {}, on the test data:{}", StateStep(), text));
  WarnOfCalibration(metrics);
  Journal(now);
}

void CoordinatorCore::EndEvaluation(Instant now) {
  evaluation_.reset();
  throughput_.Reset(now.steady);
  committed_at_ = now.steady;  // the evaluation was no pause of a switch, and no stall
}

void CoordinatorCore::OnEvaluating(const std::string& member, const job::v1::Evaluating& progress, Instant now) {
  if (!evaluation_ || !evaluation_->done.contains(member)) return;
  if (progress.generation() != active_->generation || progress.step() != StateStep()) return;
  evaluation_->deadline = now.steady + options_.evaluate_timeout;
}

void CoordinatorCore::OnEvaluated(const std::string& member, const job::v1::Evaluated& part, Instant now) {
  if (!evaluation_) return;
  const auto found = evaluation_->done.find(member);
  if (found == evaluation_->done.end() || found->second) return;
  if (!CheckTestData(member, part.test_digest(), now)) return;
  found->second = true;
  evaluation_->deadline = now.steady + options_.evaluate_timeout;
  evaluation_->scores.Add(FromProto(part));
  if (part.has_transform()) evaluation_->transform = part.transform();
}

void CoordinatorCore::CheckEvaluation(Instant now) {
  if (!evaluation_ || now.steady < evaluation_->deadline) return;
  if (evaluation_->AllDone()) return;  // the finished model is being written, which has its own deadline
  std::vector<std::string> unfinished;
  for (const auto& [name, done] : evaluation_->done) {
    if (!done) unfinished.push_back(name);
  }
  const std::string why = fmt::format("the evaluation made no progress for {:.0f} s; unfinished members: {}",
                                      base::ToSeconds(options_.evaluate_timeout), fmt::join(unfinished, ", "));
  BeginHalt({job::v1::SWITCH_CAUSE_TIMEOUT, why, unfinished.empty() ? "" : unfinished.front()}, now);
}

}  // namespace medley::worker
