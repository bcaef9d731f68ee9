#include "worker/coordinator/core/evaluations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "worker/coordinator/core/state.h"

namespace medley::worker {
namespace evaluations {
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

// Once: the weights stay what they are.
void WarnOfCalibration(EvaluationState& own, const CoreState& view, const std::map<std::string, double>& metrics,
                       Effects& out) {
  const auto error = metrics.find("calibrationError");
  if (!view.options.weighs_classes || error == metrics.end() || error->second <= kPoorCalibration) return;
  if (std::exchange(own.warned_of_calibration, true)) return;
  out.Log(true, fmt::format("probabilities differ from the rates of positives by {:.2f} on average, because "
                            "spec.training.classWeights shift them: use the order of the predictions, not their size",
                            error->second));
}

// The test data choose no model: they are seen once, by the exported one.
void RecordTest(EvaluationState& own, const CoreState& view, const std::map<std::string, double>& metrics,
                Effects& out) {
  const int64_t step = generations::StateStep(view);
  own.tested.emplace().set_step(step);
  own.tested->mutable_metrics()->insert(metrics.begin(), metrics.end());
  std::string text;
  for (const auto& [name, value] : metrics) text += fmt::format(" {} {:.6g},", name, value);
  if (!text.empty()) text.pop_back();
  out.Log(false, fmt::format("the exported model, of step {}, on the test data:{}", step, text));
  WarnOfCalibration(own, view, metrics, out);
}

}  // namespace

bool IsDue(const CoreState& view) {
  const Ledger& ledger = *view.training.ledger;
  const int64_t step = ledger.committed();
  if (view.ending.suspending || view.hand_over.successor || step != ledger.leased()) return false;
  if (!view.evaluation.curve.IsDue(ledger, step)) return false;
  const std::optional<GenerationInfo>& next = view.generations.next;
  return !next || !generations::AllWarmed(*next);  // the switch comes first
}

bool Awaits(const EvaluationState& state, const std::string& member) {
  if (!state.pending) return false;
  const auto found = state.pending->done.find(member);
  return found != state.pending->done.end() && !found->second;
}

Request CheckDeadline(const CoreState& view, base::SteadyTime now) {
  const std::optional<PendingEvaluation>& pending = view.evaluation.pending;
  if (!pending || now < pending->deadline) return {};
  if (pending->AllDone()) return {};  // the finished model is being written, which has its own deadline
  std::vector<std::string> unfinished;
  for (const auto& [name, done] : pending->done) {
    if (!done) unfinished.push_back(name);
  }
  const std::string why = fmt::format("the evaluation made no progress for {:.0f} s; unfinished members: {}",
                                      base::ToSeconds(view.options.evaluate_timeout), fmt::join(unfinished, ", "));
  return HaltRequest{{job::v1::SWITCH_CAUSE_TIMEOUT, why, unfinished.empty() ? "" : unfinished.front()}};
}

void Restore(EvaluationState& own, const job::v1::CoordinatorState& journal) {
  if (journal.has_test()) own.tested = journal.test();
  own.metrics.insert(journal.metrics().begin(), journal.metrics().end());
  own.curve.Restore({journal.evaluations().begin(), journal.evaluations().end()});
}

void Start(EvaluationState& own, const CoreState& view, const EvaluationOrder& request, base::SteadyTime now,
           Effects& out) {
  const GenerationInfo& active = *view.generations.active;
  PendingEvaluation& pending = own.pending.emplace();
  pending.last = request.last;
  pending.data = request.data;
  pending.deadline = now + view.options.evaluate_timeout;
  job::v1::SessionResponse message;
  job::v1::Evaluate& evaluate = *message.mutable_evaluate();
  evaluate.set_generation(active.generation);
  evaluate.set_step(generations::StateStep(view));
  const bool chooses = request.data == view.options.selection.data();
  evaluate.set_only_transform(chooses && own.curve.Knows(view.training.ledger->committed()));
  evaluate.set_data(request.data);
  for (const auto& [name, member] : active.members) {
    pending.done[name] = false;
    out.Send(member.peer, message);
  }
}

void Drop(EvaluationState& own) { own.pending.reset(); }

void OnEvaluating(EvaluationState& own, const CoreState& view, const std::string& member,
                  const job::v1::Evaluating& progress, base::SteadyTime now) {
  if (!own.pending || !own.pending->done.contains(member)) return;
  if (progress.generation() != view.generations.active->generation) return;
  if (progress.step() != generations::StateStep(view)) return;
  own.pending->deadline = now + view.options.evaluate_timeout;
}

void OnEvaluated(EvaluationState& own, const CoreState& view, const std::string& member, const job::v1::Evaluated& part,
                 base::SteadyTime now) {
  own.pending->done[member] = true;
  own.pending->deadline = now + view.options.evaluate_timeout;
  own.pending->scores.Add(FromProto(part));
  if (part.has_transform()) own.pending->transform = part.transform();
}

bool Record(EvaluationState& own, const CoreState& view, base::WallTime now, Effects& out) {
  PendingEvaluation& pending = *own.pending;
  const SelectionOptions& selection = view.options.selection;
  if (std::exchange(pending.recorded, true)) return false;
  if (pending.transform) own.transform = std::move(pending.transform);
  std::map<std::string, double> metrics = MetricsOf(pending.scores);
  if (pending.data != selection.data()) {
    RecordTest(own, view, metrics, out);
    return true;
  }
  const Ledger& ledger = *view.training.ledger;
  const int64_t step = ledger.committed();
  if (own.curve.At(step) != nullptr) return false;
  if (metrics.empty()) {
    own.curve.AddNothing(step);
    return false;
  }
  if (selection.validation) {
    auto samples = metrics.extract("test_samples");
    samples.key() = "validation_samples";
    metrics.insert(std::move(samples));
  }
  const job::v1::EvaluationRecord& record = own.curve.Add(ledger, step, metrics, now);
  out.Add(EvaluationCommand{record, view.generations.active->generation});
  out.Log(false, Describe(ledger, record));
  WarnOfCalibration(own, view, metrics, out);
  own.metrics = std::move(metrics);
  return false;
}

void AddLoss(EvaluationState& own, double sum, int64_t samples) { own.curve.AddLoss(sum, samples); }

void EndEpoch(EvaluationState& own, const CoreState& view, const StepRange& last, Effects& out) {
  const std::optional<double> loss = own.curve.EndEpoch();
  if (!loss) return;
  const Ledger& ledger = *view.training.ledger;
  out.Log(false, fmt::format("trained epoch {}/{} at step {} of {}: training loss {:.6g}", last.data_epoch + 1,
                             ledger.epochs(), last.step, ledger.total_steps(), *loss));
}

void RollBack(EvaluationState& own, int64_t step) {
  own.curve.RollBack(step);
  if (own.tested && own.tested->step() > step) own.tested.reset();
}

void Show(EvaluationState& own, std::map<std::string, double> metrics) { own.metrics = std::move(metrics); }

}  // namespace evaluations

bool PendingEvaluation::AllDone() const {
  return std::all_of(done.begin(), done.end(), [](const auto& at) { return at.second; });
}

}  // namespace medley::worker
