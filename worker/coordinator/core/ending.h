// How the job ends: suspended, complete or failed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "medley/job/v1/coordinator.pb.h"
#include "worker/coordinator/core/generation.h"

namespace medley::worker {

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

}  // namespace medley::worker
