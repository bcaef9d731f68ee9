#include "worker/coordinator/core/ending.h"

#include <utility>

#include "worker/coordinator/core/state.h"

namespace medley::worker::ending {

Step NextStep(const CoreState& view, base::SteadyTime now) {
  const GenerationsState& generations = view.generations;
  if (view.ending.over() || generations.mode != Mode::kTraining || generations.next || view.hand_over.successor) {
    return Step::kNothing;
  }
  const Ledger& ledger = *view.training.ledger;
  const bool suspending = view.ending.suspending;
  const bool all = training::AllCommitted(view);
  if (ledger.committed() != ledger.leased() || (!suspending && !all)) return Step::kNothing;
  if (view.checkpoints.pending || view.checkpoints.writing) return Step::kNothing;
  const bool saved = !view.options.checkpoints || checkpoints::HasCommitted(view);
  if (!saved && ledger.committed() > 0 && generations.active->restored_step == 0) {
    return now >= view.recovery.retry_at ? Step::kSave : Step::kNothing;
  }
  return suspending && !all ? Step::kSuspend : Step::kEvaluate;
}

bool IsExportMissing(const CoreState& view) { return view.options.exports && !view.ending.written; }

std::string WhyComplete(const CoreState& view) {
  return view.evaluation.curve.StopsAt(view.training.ledger->committed()).value_or("all samples are trained");
}

bool IsSuspensionLate(const EndingState& state, base::SteadyTime now) {
  return state.suspending && now >= state.suspend_deadline;
}

bool Suspend(EndingState& own, const std::string& why, base::SteadyTime deadline) {
  if (own.over() || own.suspending) return false;
  own.suspending = true;
  own.suspend_deadline = deadline;
  own.message = why;
  return true;
}

Request Export(EndingState& own, const CoreState& view, const job::v1::Observation& observation, base::SteadyTime now,
               Effects& out) {
  if (!view.evaluation.transform) {
    return FailRequest{
        "no trainer has reported the transform of the training data, without which the model cannot be "
        "used",
        true};
  }
  const std::optional<job::v1::BestRecord>& best = view.best.kept;
  const int64_t step = exported_model::StepOf(view);
  own.exporting = PendingExport{step, now + view.options.volume_timeout};
  out.Add(ExportCommand{step, best ? best->folder() : "", *view.evaluation.transform, observation,
                        view.generations.active->plan});
  return {};
}

Exported OnExported(EndingState& own, const CoreState& view, int64_t step, const absl::Status& status) {
  own.exporting.reset();
  if (status.ok()) {
    // Otherwise the generation was halted meanwhile, and ends again.
    own.written = view.evaluation.pending.has_value();
    return Exported::kSaved;
  }
  const std::optional<job::v1::BestRecord>& best = view.best.kept;
  return absl::IsDataLoss(status) && best && best->model().step() == step ? Exported::kBestIsDamaged
                                                                          : Exported::kFailed;
}

void Finish(EndingState& own, const CoreState& view, job::v1::JobPhase outcome, const std::string& why,
            bool retryable) {
  const std::optional<GenerationInfo>& active = view.generations.active;
  own.outcome = outcome;
  own.message = why;
  if (outcome == job::v1::JOB_PHASE_FAILED) own.retryable = retryable;
  own.final_generation = active ? active->generation : 0;
  own.final_plan = active ? active->request.plan().generation() : 0;
}

bool Restore(EndingState& own, const job::v1::CoordinatorState& journal) {
  const bool failed = journal.outcome() == job::v1::JOB_PHASE_FAILED && !journal.retryable();
  if (journal.outcome() != job::v1::JOB_PHASE_COMPLETE && !failed) return false;
  own.outcome = journal.outcome();
  own.message = journal.message();
  own.retryable = journal.retryable();
  return true;
}

}  // namespace medley::worker::ending
