// One container of a pod: starts, exits, restarts with backoff, readiness.
//
//            Start ok                 exit                     ShouldRestart, backoff over
//   Waiting ----------> Running ----------------> Terminated -------------------------------> Running
//      ^  cannot start yet: retried                    |  backoff: Waiting(CrashLoopBackOff)     ^
//      +-----------------------------------------------+-----------------------------------------+
//
// Not thread-safe: the pod's worker owns it.
#pragma once

#include <optional>

#include "localcluster/node/launch_plan.h"
#include "localcluster/node/node_context.h"
#include "localcluster/node/pod_status.h"
#include "localcluster/node/probe.h"

namespace medley::localcluster {

class Container {
 public:
  // `view`: what the API knows of the container (ViewFromStatus).
  Container(NodeContext& node, kube::Key pod, kube::Json spec, ContainerView view);

  struct PodPlace {
    const kube::Object& pod;
    PodFacts facts;
    std::filesystem::path folder;
    const std::map<std::string, std::string>& volumes;
    const DataSource& source;
    std::optional<double> cores;           // in place of the container's limit
    std::optional<int> network_namespace;  // of the pod; nullopt: the node's
  };

  // Checks whether the process has ended.
  void Poll();
  // Starts or restarts the container if it is time, and runs the probe. Returns when to call it again.
  std::optional<base::SteadyTime> Advance(RestartPolicy policy, const PodPlace& place);
  void Signal(int number);
  // Others may have its GPUs; it does not run.
  void ReleaseGpus();
  // The container will not be started again; if it waits for a restart, it has ended.
  void GiveUp();
  // The container waits for a reason that concerns the whole pod.
  void SetWaiting(const std::string& reason, const std::string& message);

  bool running() const { return process_ != nullptr; }
  const ContainerView& view() const { return view_; }

 private:
  void Start(const PodPlace& place);
  void KeepCores(const PodPlace& place);
  absl::Status TryStart(const PodPlace& place);
  void NoteEnd(Termination termination);
  std::optional<base::SteadyTime> Restart(RestartPolicy policy, const PodPlace& place);
  std::optional<base::SteadyTime> Probe(const PodPlace& place);
  bool ProbeExec(const PodPlace& place);
  base::nanoseconds BackoffDelay() const;
  absl::StatusOr<std::string> TakeGpus(const kube::Object& pod, int count);
  std::string GpuKey() const { return pod_.ToString() + "/" + view_.name; }
  void RemoveOldLogs(const std::filesystem::path& folder) const;

  NodeContext& node_;
  const kube::Key pod_;
  const kube::Json spec_;
  ContainerView view_;
  std::string container_id_;
  std::filesystem::path log_;              // of this start
  std::filesystem::path termination_log_;  // of this start
  std::unique_ptr<Enforcement> enforcement_;
  std::optional<double> limit_;  // cores of its specification
  std::optional<double> cores_;  // in force
  std::shared_ptr<Process> process_;
  int failures_ = 0;  // starts since the last one that ran long enough
  base::SteadyTime started_at_;
  base::SteadyTime ended_at_;
  base::SteadyTime retry_at_;
  SpawnSpec launched_;  // exec probes use its environment and folder
  std::optional<ProbeSpec> probe_;
  std::optional<ProbeTally> tally_;
  base::SteadyTime probe_at_;
  std::shared_ptr<Process> probe_process_;
};

}  // namespace medley::localcluster
