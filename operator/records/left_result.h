// The result that a coordinator that has ended left in its container's termination message (common/job_result), for a
// job whose last observation nobody has heard. Pure.
//
// Whoever may write pod statuses, or changes the coordinator's template, can write any message. So it counts less than
// everything that the operator has seen: the exit code says whether the job is complete, and what was observed is not
// taken back.
#pragma once

#include <absl/status/statusor.h>

#include <optional>
#include <string>

#include "common/job_result/job_result.h"
#include "kube/object.h"
#include "operator/api/job_status.h"

namespace medley::ops {

// The worker's termination message; empty: it has left none. `state`: "state" or "lastState".
std::string TerminationMessage(const kube::Object& pod, const std::string& state = "state");

// `observed`: what status shows. Errors say in a clause, with "its" for the pod's, why there is no result: no message,
// a message that is no result of this job, or one that contradicts the exit code, itself or the samples observed.
absl::StatusOr<job_result::JobResult> LeftResult(const kube::Object& pod, const std::string& job_uid,
                                                 const std::optional<ObservedStatus>& observed,
                                                 const std::string& state = "state");

}  // namespace medley::ops
