// The state of the worker's container in a pod of a job. Other containers do not count: admission may inject sidecars,
// which stand anywhere in the list and run on after the worker has ended. Pure.
#pragma once

#include <string>
#include <string_view>

#include "kube/object.h"

namespace medley::ops {

// Exit code of a worker whose failure a retry will not cure.
inline constexpr int kPermanentFailure = 2;
// Exit code of a coordinator that another one has replaced.
inline constexpr int kSuperseded = 3;

// The worker's entry of status.containerStatuses; empty: the kubelet has not reported it.
kube::Object WorkerStatus(const kube::Object& pod);

// The worker has ended and is not started again, whatever its sidecars do.
bool WorkerHasEnded(const kube::Object& pod);
// It has ended with exit code 0.
bool WorkerHasSucceeded(const kube::Object& pod);

// `state`: "state" or "lastState". -1: the worker has not terminated.
int ExitCode(const kube::Object& pod, const std::string& state = "state");
int RestartCount(const kube::Object& pod);

// How the worker has failed: "ran out of memory", "was killed by signal 9", "failed with exit code 2: CAUSE", with the
// cause in the last line of its log (cause.h). `last_line` of its log; may be empty.
std::string DescribeEnd(const kube::Object& pod, std::string_view last_line);
// True when DescribeEnd says more with the last line of the log.
bool LogTellsEnd(const kube::Object& pod);

}  // namespace medley::ops
