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
  if (!options_.checkpoints || options_.selection.metric.empty() || !ledger_) return nullptr;
  const job::v1::EvaluationRecord* record = curve_.At(ledger_->committed());
  if (record == nullptr || record->step() == unsaved_best_) return nullptr;
  return IsBetter(options_.selection.metric, *record, best_ ? &best_->model() : nullptr) ? record : nullptr;
}

// Keeps the model of the committed step when it is the best so far. Returns true while its checkpoint is not complete:
// no step is leased until then, so whatever is lost, the members or the checkpoint have its state.
bool CoordinatorCore::AdvanceBest(Instant now) {
  const job::v1::EvaluationRecord* record = Candidate();
  if (record == nullptr || ledger_->leased() != record->step()) return false;
  if (last_checkpoint_ == record->step() && !last_is_damaged_ && !last_folder_.empty()) {
    KeepBest(*record, now);
    return false;
  }
  if (checkpoint_ || writing_manifest_ || now.steady < retry_at_) return true;
  StartCheckpoint(record->step(), now);
  return true;
}

void CoordinatorCore::KeepBest(const job::v1::EvaluationRecord& record, Instant now) {
  best_.emplace();
  *best_->mutable_model() = BestOf(options_.selection, record);
  best_->set_folder(last_folder_);
  best_saves_ = 0;
  Log(false, "kept the best model so far, of " + Describe(best_->model()));
  Journal(now);
  commands_.push_back(PruneCommand{last_folder_});
}

// A checkpoint could not be written while the best model waits for it. After a few attempts the job trains on.
void CoordinatorCore::BestNotSaved(Instant now) {
  const job::v1::EvaluationRecord* record = Candidate();
  if (record == nullptr || AllCommitted()) return;
  retry_at_ = std::max(retry_at_, now.steady + options_.retry_wait * (int64_t{1} << best_saves_));
  if (++best_saves_ < kMostSaves) return;
  best_saves_ = 0;
  unsaved_best_ = record->step();
  Log(true,
      fmt::format("the model of step {} is the best so far, but could not be saved in {} attempts: {}", record->step(),
                  kMostSaves, best_ ? fmt::format("that of step {} is kept", best_->model().step()) : "none is kept"));
}

// The state is set back to `step`: what was evaluated later is trained again.
void CoordinatorCore::RollBackBest(int64_t step) {
  if (best_ && best_->model().step() > step) best_.reset();
  if (tested_ && tested_->step() > step) tested_.reset();
  if (unsaved_best_ > step) unsaved_best_ = 0;
}

void CoordinatorCore::DropBest(const std::string& why) {
  Log(true, fmt::format("the best model, of step {}, cannot be used, and the last one is exported: {}",
                        best_->model().step(), why));
  best_.reset();
  unsaved_best_ = ledger_->committed();  // the last model does not become the best because that is lost
  restores_ = 0;
}

// A member could not restore the checkpoint of the best model.
void CoordinatorCore::DropUnusableBest() {
  if (!best_) return;
  const auto found = unrestorable_.find(best_->folder());
  if (found != unrestorable_.end()) DropBest(found->second.reason);
}

int64_t CoordinatorCore::ExportedStep() const { return best_ ? best_->model().step() : ledger_->committed(); }

int64_t CoordinatorCore::StateStep() const {
  return active_->restored_step > 0 ? active_->restored_step : ledger_->committed();
}

// Restores the exported model as a generation, so that the test data are evaluated with it. The ledger stays.
void CoordinatorCore::RestoreExported(Instant now) {
  if (now.steady < retry_at_) return;
  const int64_t step = ExportedStep();
  if (restores_++ >= kMostRestores) {
    if (best_) return DropBest(fmt::format("it could not be restored in {} attempts", kMostRestores));
    return Fail("the last model could not be restored for the evaluation on the test data", true, now);
  }
  RosterFit fit = Fit(active_->request, Use::kAll);
  if (!fit.covers) return;  // a member is missing, and its loss is about to be known
  Ledger at = *ledger_;
  const absl::Status reset = at.ResetTo(step);
  MEDLEY_CHECK(reset.ok(), std::string(reset.message()));
  restore_ = CheckpointPosition{best_ ? best_->folder() : last_folder_, 0, step, at.ToRecord()};
  evaluation_.reset();
  const job::v1::ApplyPlanRequest request = active_->request;
  StartGeneration(request, std::move(fit), job::v1::STATE_ORIGIN_CHECKPOINT,
                  {job::v1::SWITCH_CAUSE_PLAN,
                   fmt::format("the exported model, of step {}, is evaluated on the test data", step), ""},
                  now);
  next_->restored_step = step;
}

// Takes the next step to the end of a job whose samples are trained and saved. Returns true when every evaluation has
// been made.
bool CoordinatorCore::AdvanceLastEvaluations(Instant now) {
  if (evaluation_ && !evaluation_->AllDone()) return false;
  if (evaluation_) RecordScores(now);
  const int64_t committed = ledger_->committed();
  if (!curve_.Knows(committed) && active_->restored_step == 0) {
    StartEvaluation(true, options_.selection.data(), now);
    return false;
  }
  if (AdvanceBest(now)) return false;
  DropUnusableBest();
  const int64_t step = ExportedStep();
  if (options_.selection.separate_test() && (!tested_ || tested_->step() != step)) {
    if (StateStep() != step) {
      RestoreExported(now);
    } else {
      StartEvaluation(true, job::v1::EVALUATION_DATA_TEST, now);
    }
    return false;
  }
  if (!evaluation_) {  // for the transform
    StartEvaluation(true, options_.selection.data(), now);
    return false;
  }
  if (options_.selection.separate_test()) {
    metrics_ = {tested_->metrics().begin(), tested_->metrics().end()};
  } else if (best_) {
    metrics_ = {best_->model().metrics().begin(), best_->model().metrics().end()};
  } else if (const job::v1::EvaluationRecord* last = curve_.At(committed)) {
    metrics_ = {last->metrics().begin(), last->metrics().end()};
  }
  job::v1::ExportedState& exported = exported_.emplace();
  exported.set_step(step);
  exported.set_best(best_.has_value());
  exported.set_epochs(static_cast<int32_t>(step / (ledger_->total_steps() / ledger_->epochs())));
  return true;
}

}  // namespace medley::worker
