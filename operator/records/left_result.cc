#include "operator/records/left_result.h"

#include <string_view>

#include "common/base/status.h"
#include "common/base/utf8.h"
#include "operator/api/worker_state.h"

namespace medley::ops {
namespace {

using job_result::JobResult;
using job_result::Phase;

constexpr size_t kMostCauseBytes = 200;

absl::Status CheckExitCode(Phase phase, int code) {
  // A pod that has succeeded may have no status of its container any more.
  const bool ended_well = code <= 0;
  if (ended_well == (phase != Phase::kFailed)) return absl::OkStatus();
  return base::FailedPrecondition("it says {}, and the exit code is {}", job_result::ToString(phase), code);
}

// A job that is complete has trained all that was seen. One that is not may have returned to a checkpoint.
absl::Status CheckSamples(const JobResult& result, const std::optional<ObservedStatus>& observed) {
  if (result.phase != Phase::kComplete || result.samples_total == 0) return absl::OkStatus();
  if (!result.stopped_early && result.samples < result.samples_total) {
    return base::FailedPrecondition("it says Complete, and {} of {} samples", result.samples, result.samples_total);
  }
  if (!observed) return absl::OkStatus();
  if (observed->samples_total > 0 && observed->samples_total != result.samples_total) {
    return base::FailedPrecondition("it says that the job has {} samples, and {} were observed", result.samples_total,
                                    observed->samples_total);
  }
  if (result.samples >= observed->samples) return absl::OkStatus();
  return base::FailedPrecondition("it says {} samples, and {} were observed before", result.samples, observed->samples);
}

absl::StatusOr<JobResult> Read(const std::string& message, const std::string& job_uid,
                               const std::optional<ObservedStatus>& observed, int code) {
  MEDLEY_ASSIGN_OR_RETURN(JobResult result, job_result::Parse(message, job_uid));
  MEDLEY_RETURN_IF_ERROR(CheckExitCode(result.phase, code));
  MEDLEY_RETURN_IF_ERROR(CheckSamples(result, observed));
  return result;
}

}  // namespace

std::string TerminationMessage(const kube::Object& pod, const std::string& state) {
  return WorkerStatus(pod).String("/" + state + "/terminated/message");
}

absl::StatusOr<JobResult> LeftResult(const kube::Object& pod, const std::string& job_uid,
                                     const std::optional<ObservedStatus>& observed, const std::string& state) {
  const std::string message = TerminationMessage(pod, state);
  if (message.empty()) return base::NotFound("its pod has no termination message");
  absl::StatusOr<JobResult> result = Read(message, job_uid, observed, ExitCode(pod, state));
  if (result.ok()) return result;
  return base::FailedPrecondition("its pod's termination message is not used: {}",
                                  base::Printable(base::Message(result.status()), kMostCauseBytes));
}

}  // namespace medley::ops
