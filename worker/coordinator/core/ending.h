// How the job ends: suspended, complete or failed; and the finished model.
//
// It decides what is left to do once all samples are trained, or the job is to be suspended.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <optional>
#include <string>

#include "medley/job/v1/coordinator.pb.h"
#include "worker/coordinator/core/effects.h"
#include "worker/coordinator/core/generation.h"

namespace medley::worker {

struct CoreState;

struct EndingState {
  bool over() const { return outcome != job::v1::JOB_PHASE_UNSPECIFIED; }

  bool suspending = false;
  base::SteadyTime suspend_deadline{};
  std::optional<PendingExport> exporting;  // outlives an evaluation that is given up: one write at a time
  bool written = false;                    // the finished model
  job::v1::JobPhase outcome = job::v1::JOB_PHASE_UNSPECIFIED;
  bool retryable = true;
  int64_t final_generation = 0;  // the generation in force at the end
  int64_t final_plan = 0;        // and the generation of its plan
  std::string message;           // why the job is suspended, or is over
};

namespace ending {

// The next step to the end of the job. kEvaluate: the last evaluations, then the export, then the end.
enum class Step { kNothing, kSave, kSuspend, kEvaluate };
Step NextStep(const CoreState& view, base::SteadyTime now);
bool IsExportMissing(const CoreState& view);
// Why the job is complete, as a sentence.
std::string WhyComplete(const CoreState& view);
// Whether the job has to be suspended without a checkpoint.
bool IsSuspensionLate(const EndingState& state, base::SteadyTime now);

// Returns whether this is news.
bool Suspend(EndingState& own, const std::string& why, base::SteadyTime deadline);
// `observation`: what is written beside the finished model.
Request Export(EndingState& own, const CoreState& view, const job::v1::Observation& observation, base::SteadyTime now,
               Effects& out);
// What follows when the finished model was written, or was not.
enum class Exported { kSaved, kBestIsDamaged, kFailed };
Exported OnExported(EndingState& own, const CoreState& view, int64_t step, const absl::Status& status);
void Finish(EndingState& own, const CoreState& view, job::v1::JobPhase outcome, const std::string& why, bool retryable);
// Returns whether the job is over.
bool Restore(EndingState& own, const job::v1::CoordinatorState& journal);

}  // namespace ending
}  // namespace medley::worker
