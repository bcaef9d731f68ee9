// One container of one pod: starts, ends, restarts with backoff, readiness.
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

namespace medley::kube {

class Container {
 public:
  // `view`: what is known from the API (ViewFromStatus).
  Container(NodeContext& node, Key pod, Json spec, ContainerView view);

  struct PodPlace {
    const Object& pod;
    PodFacts facts;
    std::filesystem::path folder;
    const std::map<std::string, std::string>& volumes;
    const DataSource& source;
  };

  // Notices the end of the process.
  void Poll();
  // Starts or starts again what is due, and asks the probe. Returns when to look again.
  std::optional<base::SteadyTime> Advance(RestartPolicy policy, const PodPlace& place);
  void Signal(int number);
  // Nothing will be started again: a container that waits for its next start has ended.
  void GiveUp();
  // It waits, for a reason that concerns the whole pod.
  void SetWaiting(const std::string& reason, const std::string& message);

  bool running() const { return process_ != nullptr; }
  const ContainerView& view() const { return view_; }

 private:
  void Start(const PodPlace& place);
  absl::Status TryStart(const PodPlace& place);
  void NoteEnd(Termination termination);
  std::optional<base::SteadyTime> Restart(RestartPolicy policy, const PodPlace& place);
  std::optional<base::SteadyTime> Probe(const PodPlace& place);
  bool ProbeExec(const PodPlace& place);
  base::nanoseconds BackoffDelay() const;
  void RemoveOldLogs(const std::filesystem::path& folder) const;

  NodeContext& node_;
  const Key pod_;
  const Json spec_;
  ContainerView view_;
  std::string container_id_;
  std::unique_ptr<Enforcement> enforcement_;
  std::shared_ptr<Process> process_;
  int failures_ = 0;  // starts since the last one that lasted
  base::SteadyTime started_at_;
  base::SteadyTime ended_at_;
  base::SteadyTime retry_at_;
  SpawnSpec launched_;  // for exec probes: its environment and folder
  std::optional<ProbeSpec> probe_;
  std::optional<ProbeTally> tally_;
  base::SteadyTime probe_at_;
  std::shared_ptr<Process> probe_process_;
};

}  // namespace medley::kube
