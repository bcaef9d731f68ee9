#include "worker/coordinator/core/exported_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/status.h"
#include "worker/coordinator/core/best_model.h"
#include "worker/coordinator/core/state.h"

namespace medley::worker::exported_model {
namespace {

constexpr int kMostSaves = 3;     // attempts to save a model that is the best so far
constexpr int kMostRestores = 3;  // of the exported model, to evaluate it

std::string DescribeBest(const job::v1::BestModel& best) {
  return fmt::format("step {}, epoch {}: {} {:.6g}", best.step(), best.epochs(), best.metric(), best.value());
}

}  // namespace

const job::v1::EvaluationRecord* Candidate(const CoreState& view) {
  const SelectionOptions& selection = view.options.selection;
  if (!view.options.checkpoints || selection.metric.empty() || !view.training.ledger) return nullptr;
  const job::v1::EvaluationRecord* record = view.evaluation.curve.At(view.training.ledger->committed());
  if (record == nullptr || record->step() == view.best.unsaved) return nullptr;
  const std::optional<job::v1::BestRecord>& kept = view.best.kept;
  return IsBetter(selection.metric, *record, kept ? &kept->model() : nullptr) ? record : nullptr;
}

bool IsKeeping(const CoreState& view) {
  return !view.ending.suspending && !view.hand_over.successor && !training::AllCommitted(view);
}

Keep NextKeep(const CoreState& view, base::SteadyTime now) {
  const job::v1::EvaluationRecord* record = Candidate(view);
  if (record == nullptr || view.training.ledger->leased() != record->step()) return Keep::kNothing;
  const CheckpointsState& checkpoints = view.checkpoints;
  if (checkpoints::HasCommitted(view) && !checkpoints.last_folder.empty()) return Keep::kNow;
  if (checkpoints.pending || checkpoints.writing || now < view.recovery.retry_at) return Keep::kWait;
  return Keep::kSave;
}

int64_t StepOf(const CoreState& view) {
  return view.best.kept ? view.best.kept->model().step() : view.training.ledger->committed();
}

CheckpointPosition PositionOf(const CoreState& view) {
  const int64_t step = StepOf(view);
  Ledger at = *view.training.ledger;
  const absl::Status reset = at.ResetTo(step);
  MEDLEY_CHECK(reset.ok(), std::string(reset.message()));
  return {view.best.kept ? view.best.kept->folder() : view.checkpoints.last_folder, 0, step, at.ToRecord()};
}

std::map<std::string, double> MetricsAtEnd(const CoreState& view) {
  const EvaluationState& evaluation = view.evaluation;
  if (view.options.selection.separate_test()) {
    return {evaluation.tested->metrics().begin(), evaluation.tested->metrics().end()};
  }
  if (const auto& best = view.best.kept) return {best->model().metrics().begin(), best->model().metrics().end()};
  if (const job::v1::EvaluationRecord* last = evaluation.curve.At(view.training.ledger->committed())) {
    return {last->metrics().begin(), last->metrics().end()};
  }
  return evaluation.metrics;
}

LastEvaluation NextEvaluation(const CoreState& view) {
  const EvaluationState& evaluation = view.evaluation;
  const SelectionOptions& selection = view.options.selection;
  const int64_t step = StepOf(view);
  if (selection.separate_test() && (!evaluation.tested || evaluation.tested->step() != step)) {
    if (generations::StateStep(view) != step) return {.restores = true, .evaluate = std::nullopt};
    return {.restores = false, .evaluate = EvaluationOrder{true, job::v1::EVALUATION_DATA_TEST}};
  }
  if (evaluation.pending) return {};
  return {.restores = false, .evaluate = EvaluationOrder{true, selection.data()}};  // for the transform
}

std::optional<std::string> WhyUnusable(const CoreState& view) {
  if (!view.best.kept) return std::nullopt;
  const auto found = view.restoring.unrestorable.find(view.best.kept->folder());
  return found == view.restoring.unrestorable.end() ? std::nullopt : std::optional(found->second.reason);
}

void Restore(BestState& own, const CoreState& view, const job::v1::CoordinatorState& journal) {
  if (journal.has_best() && !view.options.selection.metric.empty()) own.kept = journal.best();
  if (journal.has_exported()) own.exported = journal.exported();
}

void KeepBest(BestState& own, const CoreState& view, Effects& out) {
  const job::v1::EvaluationRecord& record = *Candidate(view);
  job::v1::BestRecord kept;
  *kept.mutable_model() = BestOf(view.options.selection, record);
  kept.set_folder(view.checkpoints.last_folder);
  own.kept = std::move(kept);
  own.saves = 0;
  out.Log(false, "kept the best model so far, of " + DescribeBest(own.kept->model()));
}

std::optional<base::nanoseconds> NotSaved(BestState& own, const CoreState& view, Effects& out) {
  const job::v1::EvaluationRecord* record = Candidate(view);
  if (record == nullptr || training::AllCommitted(view)) return std::nullopt;
  const base::nanoseconds wait = view.options.retry_wait * (int64_t{1} << own.saves);
  if (++own.saves < kMostSaves) return wait;
  own.saves = 0;
  own.unsaved = record->step();
  out.Log(true,
          fmt::format("the model of step {} is the best so far, but could not be saved in {} attempts: {}",
                      record->step(), kMostSaves,
                      own.kept ? fmt::format("that of step {} is kept", own.kept->model().step()) : "none is kept"));
  return wait;
}

void RollBack(BestState& own, int64_t step) {
  if (own.kept && own.kept->model().step() > step) own.kept.reset();
  if (own.unsaved > step) own.unsaved = 0;
}

void DropBest(BestState& own, const CoreState& view, const std::string& why, Effects& out) {
  out.Log(true, fmt::format("the best model, of step {}, cannot be used, and the last one is exported: {}",
                            own.kept->model().step(), why));
  own.kept.reset();
  // The last model does not become the best because that is lost.
  own.unsaved = view.training.ledger->committed();
  own.restores = 0;
}

void InForce(BestState& own) { own.restores = 0; }

Request RestoreModel(BestState& own, const CoreState& view, base::SteadyTime now) {
  if (now < view.recovery.retry_at) return {};
  const int64_t step = StepOf(view);
  if (own.restores++ >= kMostRestores) {
    if (own.kept) return DropBestRequest{fmt::format("it could not be restored in {} attempts", kMostRestores)};
    return FailRequest{"the last model could not be restored for the evaluation on the test data", true};
  }
  const job::v1::ApplyPlanRequest& plan = view.generations.active->request;
  RosterFit fit = members::Fit(view, plan, members::Use::kAll);
  if (!fit.covers) return {};  // a member is missing, and its loss is about to be known
  return PrepareRequest{plan,
                        std::move(fit),
                        job::v1::STATE_ORIGIN_CHECKPOINT,
                        {job::v1::SWITCH_CAUSE_PLAN,
                         fmt::format("the exported model, of step {}, is evaluated on the test data", step), ""},
                        step};
}

void End(BestState& own, const CoreState& view) {
  if (view.options.is_program) return;  // it has no model here: its result is what it has saved
  const Ledger& ledger = *view.training.ledger;
  const int64_t step = StepOf(view);
  own.exported.emplace();
  own.exported->set_step(step);
  own.exported->set_best(own.kept.has_value());
  own.exported->set_epochs(static_cast<int32_t>(step / (ledger.total_steps() / ledger.epochs())));
}

}  // namespace medley::worker::exported_model
