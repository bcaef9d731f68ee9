#include "operator/api/worker_state.h"

#include "kube/pod.h"
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

}  // namespace medley::ops
