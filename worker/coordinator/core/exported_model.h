// The model that the job ends with: the best one that was evaluated, or the last
// (docs/adr/0048-the-best-model-is-the-result.md).
//
// It decides which model is kept while the job trains, and restores it at the end, so that the test data are evaluated
// with it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "medley/job/v1/coordinator.pb.h"
#include "medley/job/v1/journal.pb.h"
#include "worker/coordinator/core/effects.h"
#include "worker/coordinator/core/evaluations.h"
#include "worker/coordinator/core/restoring.h"

namespace medley::worker {

struct CoreState;

struct BestState {
  std::optional<job::v1::BestRecord> kept;  // whose checkpoint is kept
  int saves = 0;        // failed attempts to save the model of the committed step, which is the best
  int64_t unsaved = 0;  // the step of a better one that could not be saved
  int restores = 0;     // attempts to restore the exported model at the end
  std::optional<job::v1::ExportedState> exported;
};

namespace exported_model {

// The record of the committed step, when its model is better than the one that is kept and has yet to be kept.
const job::v1::EvaluationRecord* Candidate(const CoreState& view);
// Whether the best model is kept before training goes on. At the end it is saved anyway.
bool IsKeeping(const CoreState& view);
// What keeps the model of the committed step, when it is the best so far. While its checkpoint is not complete no step
// is leased, so whatever is lost, the members or the checkpoint have its state.
enum class Keep { kNothing, kNow, kWait, kSave };
Keep NextKeep(const CoreState& view, base::SteadyTime now);
int64_t StepOf(const CoreState& view);  // of the model that the job ends with
CheckpointPosition PositionOf(const CoreState& view);
std::map<std::string, double> MetricsAtEnd(const CoreState& view);
// The evaluation that is missing before the job can end; nothing: all have been made. `restores`: the model has to be
// restored for it first.
struct LastEvaluation {
  bool restores = false;
  std::optional<EvaluationOrder> evaluate;
};
LastEvaluation NextEvaluation(const CoreState& view);
// Why the best model cannot be used: a member could not restore its checkpoint.
std::optional<std::string> WhyUnusable(const CoreState& view);

void Restore(BestState& own, const CoreState& view, const job::v1::CoordinatorState& journal);
void KeepBest(BestState& own, const CoreState& view, Effects& out);
// A checkpoint could not be written while the best model waits for it. After a few attempts the job trains on. Returns
// how long to wait before the next one; nullopt: nothing waits for it.
std::optional<base::nanoseconds> NotSaved(BestState& own, const CoreState& view, Effects& out);
// The state is set back to `step`: what was evaluated later is trained again.
void RollBack(BestState& own, int64_t step);
void DropBest(BestState& own, const CoreState& view, const std::string& why, Effects& out);
void InForce(BestState& own);  // the exported model has been restored
// Restores the exported model as a generation. The ledger stays.
Request RestoreModel(BestState& own, const CoreState& view, base::SteadyTime now);
void End(BestState& own, const CoreState& view);

}  // namespace exported_model
}  // namespace medley::worker
