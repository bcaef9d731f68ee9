#include "operator/api/worker_state.h"

#include <fmt/core.h>

#include "kube/pod.h"
#include "operator/api/cause.h"
#include "operator/api/names.h"
#include "operator/api/resources.h"

namespace medley::ops {

kube::Object WorkerStatus(const kube::Object& pod) {
  for (const kube::Json& status : pod.At("/status/containerStatuses")) {
    if (status.is_object() && status.value("name", kube::Json()) == kWorkerContainer) return kube::Object(status);
  }
  return kube::Object();
}

bool WorkerHasEnded(const kube::Object& pod) {
  if (kube::HasEnded(pod)) return true;
  const int code = ExitCode(pod);
  // The coordinator's restart policy is OnFailure, that of all others is Never.
  return code == 0 || (code > 0 && pod.label(kRoleLabel) != ToString(Role::kCoordinator));
}

bool WorkerHasSucceeded(const kube::Object& pod) {
  if (pod.String("/status/phase") == "Succeeded") return true;
  const kube::Object worker = WorkerStatus(pod);
  const kube::Json& signal = worker.At("/state/terminated/signal");
  const bool killed = signal.is_number_integer() && signal.get<int>() != 0;
  return WorkerHasEnded(pod) && ExitCode(pod) == 0 && !killed;
}

int ExitCode(const kube::Object& pod, const std::string& state) {
  const kube::Object worker = WorkerStatus(pod);
  const kube::Json& code = worker.At("/" + state + "/terminated/exitCode");
  return code.is_number_integer() ? code.get<int>() : -1;
}

int RestartCount(const kube::Object& pod) {
  const kube::Object worker = WorkerStatus(pod);
  const kube::Json& count = worker.At("/restartCount");
  return count.is_number_integer() ? count.get<int>() : 0;
}

namespace {

// nullopt: the worker has ended with an exit code of its own.
std::optional<std::string> EndByOthers(const kube::Object& pod) {
  const kube::Object worker = WorkerStatus(pod);
  const kube::Object state(worker.At("/state/terminated"));
  if (state.String("/reason") == "OOMKilled") return "ran out of memory";
  const kube::Json& signal = state.At("/signal");
  if (signal.is_number_integer() && signal.get<int>() != 0) {
    return fmt::format("was killed by signal {}", signal.get<int>());
  }
  const int exit = ExitCode(pod);
  // A kubelet reports a signal as a shell does: 128 plus its number.
  if (exit > 128 && exit <= 128 + 64) return fmt::format("was killed by signal {}", exit - 128);
  if (exit < 0) {  // the kubelet has not reported it: evicted, or its node was lost
    const std::string reason = pod.String("/status/reason");
    return reason.empty() ? "failed" : "failed: " + reason;
  }
  return std::nullopt;
}

}  // namespace

bool LogTellsEnd(const kube::Object& pod) { return !EndByOthers(pod); }

std::string DescribeEnd(const kube::Object& pod, std::string_view last_line) {
  if (auto known = EndByOthers(pod)) return *std::move(known);
  const std::string cause = CauseIn(last_line);
  return fmt::format("failed with exit code {}{}{}", ExitCode(pod), cause.empty() ? "" : ": ", cause);
}

}  // namespace medley::ops
