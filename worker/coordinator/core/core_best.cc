// CoordinatorCore: keeping the best model, and which model the job ends with
// (docs/adr/0048-the-best-model-is-the-result.md).
#include <fmt/format.h>

#include <algorithm>

#include "common/base/status.h"
#include "worker/coordinator/core/core.h"

namespace medley::worker {
namespace {

constexpr int kMostSaves = 3;     // attempts to save a model that is the best so far
constexpr int kMostRestores = 3;  // of the exported model, to evaluate it

std::string Describe(const job::v1::BestModel& best) {
  return fmt::format("step {}, epoch {}: {} {:.6g}", best.step(), best.epochs(), best.metric(), best.value());
}

}  // namespace

// The record of the committed step, when its model is better than the one that is kept and has yet to be kept.
const job::v1::EvaluationRecord* CoordinatorCore::Candidate() const {
  if (!state_.options.checkpoints || state_.options.selection.metric.empty() || !state_.training.ledger) return nullptr;
  const job::v1::EvaluationRecord* record = state_.evaluation.curve.At(state_.training.ledger->committed());
  if (record == nullptr || record->step() == state_.best.unsaved) return nullptr;
  return IsBetter(state_.options.selection.metric, *record, state_.best.kept ? &state_.best.kept->model() : nullptr)
             ? record
             : nullptr;
}

// Keeps the model of the committed step when it is the best so far. Returns true while its checkpoint is not complete:
// no step is leased until then, so whatever is lost, the members or the checkpoint have its state.
bool CoordinatorCore::AdvanceBest(Instant now) {
  const job::v1::EvaluationRecord* record = Candidate();
  if (record == nullptr || state_.training.ledger->leased() != record->step()) return false;
  if (state_.checkpoints.last_step == record->step() && !state_.checkpoints.last_is_damaged &&
      !state_.checkpoints.last_folder.empty()) {
    KeepBest(*record, now);
    return false;
  }
  if (state_.checkpoints.pending || state_.checkpoints.writing || now.steady < state_.recovery.retry_at) return true;
  StartCheckpoint(record->step(), now);
  return true;
}

void CoordinatorCore::KeepBest(const job::v1::EvaluationRecord& record, Instant now) {
  state_.best.kept.emplace();
  *state_.best.kept->mutable_model() = BestOf(state_.options.selection, record);
  state_.best.kept->set_folder(state_.checkpoints.last_folder);
  state_.best.saves = 0;
  Log(false, "kept the best model so far, of " + Describe(state_.best.kept->model()));
  Journal(now);
  commands_.push_back(PruneCommand{state_.checkpoints.last_folder});
}

// A checkpoint could not be written while the best model waits for it. After a few attempts the job trains on.
void CoordinatorCore::BestNotSaved(Instant now) {
  const job::v1::EvaluationRecord* record = Candidate();
  if (record == nullptr || AllCommitted()) return;
  state_.recovery.retry_at =
      std::max(state_.recovery.retry_at, now.steady + state_.options.retry_wait * (int64_t{1} << state_.best.saves));
  if (++state_.best.saves < kMostSaves) return;
  state_.best.saves = 0;
  state_.best.unsaved = record->step();
  Log(true, fmt::format("the model of step {} is the best so far, but could not be saved in {} attempts: {}",
                        record->step(), kMostSaves,
                        state_.best.kept ? fmt::format("that of step {} is kept", state_.best.kept->model().step())
                                         : "none is kept"));
}

// The state is set back to `step`: what was evaluated later is trained again.
void CoordinatorCore::RollBackBest(int64_t step) {
  if (state_.best.kept && state_.best.kept->model().step() > step) state_.best.kept.reset();
  if (state_.evaluation.tested && state_.evaluation.tested->step() > step) state_.evaluation.tested.reset();
  if (state_.best.unsaved > step) state_.best.unsaved = 0;
}

void CoordinatorCore::DropBest(const std::string& why) {
  Log(true, fmt::format("the best model, of step {}, cannot be used, and the last one is exported: {}",
                        state_.best.kept->model().step(), why));
  state_.best.kept.reset();
  state_.best.unsaved =
      state_.training.ledger->committed();  // the last model does not become the best because that is lost
  state_.best.restores = 0;
}

// A member could not restore the checkpoint of the best model.
void CoordinatorCore::DropUnusableBest() {
  if (!state_.best.kept) return;
  const auto found = state_.restoring.unrestorable.find(state_.best.kept->folder());
  if (found != state_.restoring.unrestorable.end()) DropBest(found->second.reason);
}

int64_t CoordinatorCore::ExportedStep() const {
  return state_.best.kept ? state_.best.kept->model().step() : state_.training.ledger->committed();
}

int64_t CoordinatorCore::StateStep() const {
  return state_.generations.active->restored_step > 0 ? state_.generations.active->restored_step
                                                      : state_.training.ledger->committed();
}

// Restores the exported model as a generation, so that the test data are evaluated with it. The ledger stays.
void CoordinatorCore::RestoreExported(Instant now) {
  if (now.steady < state_.recovery.retry_at) return;
  const int64_t step = ExportedStep();
  if (state_.best.restores++ >= kMostRestores) {
    if (state_.best.kept) return DropBest(fmt::format("it could not be restored in {} attempts", kMostRestores));
    return Fail("the last model could not be restored for the evaluation on the test data", true, now);
  }
  RosterFit fit = Fit(state_.generations.active->request, Use::kAll);
  if (!fit.covers) return;  // a member is missing, and its loss is about to be known
  Ledger at = *state_.training.ledger;
  const absl::Status reset = at.ResetTo(step);
  MEDLEY_CHECK(reset.ok(), std::string(reset.message()));
  state_.restoring.position = CheckpointPosition{
      state_.best.kept ? state_.best.kept->folder() : state_.checkpoints.last_folder, 0, step, at.ToRecord()};
  state_.evaluation.pending.reset();
  const job::v1::ApplyPlanRequest request = state_.generations.active->request;
  StartGeneration(request, std::move(fit), job::v1::STATE_ORIGIN_CHECKPOINT,
                  {job::v1::SWITCH_CAUSE_PLAN,
                   fmt::format("the exported model, of step {}, is evaluated on the test data", step), ""},
                  now);
  state_.generations.next->restored_step = step;
}

// Takes the next step to the end of a job whose samples are trained and saved. Returns true when every evaluation has
// been made.
bool CoordinatorCore::AdvanceLastEvaluations(Instant now) {
  if (state_.evaluation.pending && !state_.evaluation.pending->AllDone()) return false;
  if (state_.evaluation.pending) RecordScores(now);
  const int64_t committed = state_.training.ledger->committed();
  if (!state_.evaluation.curve.Knows(committed) && state_.generations.active->restored_step == 0) {
    StartEvaluation(true, state_.options.selection.data(), now);
    return false;
  }
  if (AdvanceBest(now)) return false;
  DropUnusableBest();
  const int64_t step = ExportedStep();
  if (state_.options.selection.separate_test() &&
      (!state_.evaluation.tested || state_.evaluation.tested->step() != step)) {
    if (StateStep() != step) {
      RestoreExported(now);
    } else {
      StartEvaluation(true, job::v1::EVALUATION_DATA_TEST, now);
    }
    return false;
  }
  if (!state_.evaluation.pending) {  // for the transform
    StartEvaluation(true, state_.options.selection.data(), now);
    return false;
  }
  if (state_.options.selection.separate_test()) {
    state_.evaluation.metrics = {state_.evaluation.tested->metrics().begin(),
                                 state_.evaluation.tested->metrics().end()};
  } else if (state_.best.kept) {
    state_.evaluation.metrics = {state_.best.kept->model().metrics().begin(),
                                 state_.best.kept->model().metrics().end()};
  } else if (const job::v1::EvaluationRecord* last = state_.evaluation.curve.At(committed)) {
    state_.evaluation.metrics = {last->metrics().begin(), last->metrics().end()};
  }
  job::v1::ExportedState& exported = state_.best.exported.emplace();
  exported.set_step(step);
  exported.set_best(state_.best.kept.has_value());
  exported.set_epochs(
      static_cast<int32_t>(step / (state_.training.ledger->total_steps() / state_.training.ledger->epochs())));
  return true;
}

}  // namespace medley::worker
