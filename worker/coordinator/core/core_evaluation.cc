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
  if (over() || state_.generations.mode != Mode::kTraining) return false;
  if (state_.evaluation.pending) {
    if (!state_.evaluation.pending->last && state_.evaluation.pending->AllDone()) {
      RecordScores(now);
      EndEvaluation(now);
      Journal(now);  // before a lease depends on it
      return KeepingBest() && AdvanceBest(now);
    }
    return !state_.evaluation.pending->last;
  }
  if (KeepingBest() && AdvanceBest(now)) return true;
  const int64_t step = state_.training.ledger->committed();
  if (state_.ending.suspending || state_.hand_over.successor || step != state_.training.ledger->leased() ||
      !state_.evaluation.curve.IsDue(*state_.training.ledger, step))
    return false;
  if (state_.generations.next && AllWarmed()) return false;  // the switch comes first
  StartEvaluation(false, state_.options.selection.data(), now);
  return true;
}

// Whether the best model is kept before training goes on. At the end it is saved anyway.
bool CoordinatorCore::KeepingBest() const {
  return !state_.ending.suspending && !state_.hand_over.successor && !AllCommitted();
}

void CoordinatorCore::StartEvaluation(bool last, job::v1::EvaluationData data, Instant now) {
  PendingEvaluation& pending = state_.evaluation.pending.emplace();
  pending.last = last;
  pending.data = data;
  pending.deadline = now.steady + state_.options.evaluate_timeout;
  state_.meters.cost.Pause();
  const int64_t step = StateStep();
  job::v1::SessionResponse message;
  message.mutable_evaluate()->set_generation(state_.generations.active->generation);
  message.mutable_evaluate()->set_step(step);
  const bool chooses = data == state_.options.selection.data();
  message.mutable_evaluate()->set_only_transform(chooses &&
                                                 state_.evaluation.curve.Knows(state_.training.ledger->committed()));
  message.mutable_evaluate()->set_data(data);
  for (const auto& [name, member] : state_.generations.active->members) {
    pending.done[name] = false;
    Send(member.peer, message);
  }
}

void CoordinatorCore::RecordScores(Instant now) {
  if (std::exchange(state_.evaluation.pending->recorded, true)) return;
  if (state_.evaluation.pending->transform)
    state_.evaluation.transform = std::move(state_.evaluation.pending->transform);
  std::map<std::string, double> metrics = MetricsOf(state_.evaluation.pending->scores);
  if (state_.evaluation.pending->data != state_.options.selection.data()) return RecordTest(metrics, now);
  const int64_t step = state_.training.ledger->committed();
  if (state_.evaluation.curve.At(step) != nullptr) return;
  if (metrics.empty()) return state_.evaluation.curve.AddNothing(step);
  if (state_.options.selection.validation) {
    auto samples = metrics.extract("test_samples");
    samples.key() = "validation_samples";
    metrics.insert(std::move(samples));
  }
  const job::v1::EvaluationRecord& record =
      state_.evaluation.curve.Add(*state_.training.ledger, step, metrics, now.wall);
  commands_.push_back(EvaluationCommand{record, state_.generations.active->generation});
  Log(false, Describe(*state_.training.ledger, record));
  WarnOfCalibration(metrics);
  state_.evaluation.metrics = metrics;
}

// Once: the weights stay what they are.
void CoordinatorCore::WarnOfCalibration(const std::map<std::string, double>& metrics) {
  const auto error = metrics.find("calibrationError");
  if (!state_.options.weighs_classes || error == metrics.end() || error->second <= kPoorCalibration) return;
  if (std::exchange(state_.evaluation.warned_of_calibration, true)) return;
  Log(true, fmt::format("probabilities differ from the rates of positives by {:.2f} on average, because "
                        "spec.training.classWeights shift them: use the order of the predictions, not their size",
                        error->second));
}

// The test data choose no model: they are seen once, by the exported one.
void CoordinatorCore::RecordTest(const std::map<std::string, double>& metrics, Instant now) {
  state_.evaluation.tested.emplace().set_step(StateStep());
  state_.evaluation.tested->mutable_metrics()->insert(metrics.begin(), metrics.end());
  std::string text;
  for (const auto& [name, value] : metrics) text += fmt::format(" {} {:.6g},", name, value);
  if (!text.empty()) text.pop_back();
  Log(false, fmt::format("the exported model, of step {}, on the test data:{}", StateStep(), text));
  WarnOfCalibration(metrics);
  Journal(now);
}

void CoordinatorCore::EndEvaluation(Instant now) {
  state_.evaluation.pending.reset();
  state_.meters.throughput.Reset(now.steady);
  state_.training.committed_at = now.steady;  // the evaluation was no pause of a switch, and no stall
}

void CoordinatorCore::OnEvaluating(const std::string& member, const job::v1::Evaluating& progress, Instant now) {
  if (!state_.evaluation.pending || !state_.evaluation.pending->done.contains(member)) return;
  if (progress.generation() != state_.generations.active->generation || progress.step() != StateStep()) return;
  state_.evaluation.pending->deadline = now.steady + state_.options.evaluate_timeout;
}

void CoordinatorCore::OnEvaluated(const std::string& member, const job::v1::Evaluated& part, Instant now) {
  if (!state_.evaluation.pending) return;
  const auto found = state_.evaluation.pending->done.find(member);
  if (found == state_.evaluation.pending->done.end() || found->second) return;
  if (!CheckTestData(member, part.test_digest(), now)) return;
  found->second = true;
  state_.evaluation.pending->deadline = now.steady + state_.options.evaluate_timeout;
  state_.evaluation.pending->scores.Add(FromProto(part));
  if (part.has_transform()) state_.evaluation.pending->transform = part.transform();
}

void CoordinatorCore::CheckEvaluation(Instant now) {
  if (!state_.evaluation.pending || now.steady < state_.evaluation.pending->deadline) return;
  if (state_.evaluation.pending->AllDone()) return;  // the finished model is being written, which has its own deadline
  std::vector<std::string> unfinished;
  for (const auto& [name, done] : state_.evaluation.pending->done) {
    if (!done) unfinished.push_back(name);
  }
  const std::string why = fmt::format("the evaluation made no progress for {:.0f} s; unfinished members: {}",
                                      base::ToSeconds(state_.options.evaluate_timeout), fmt::join(unfinished, ", "));
  BeginHalt({job::v1::SWITCH_CAUSE_TIMEOUT, why, unfinished.empty() ? "" : unfinished.front()}, now);
}

}  // namespace medley::worker
