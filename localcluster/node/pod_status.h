// Computes the status of a pod as a kubelet reports it, from the states of its containers. Pure.
//
// The phase is Pending until every container has started once, Running while a container runs or will be restarted,
// then Succeeded if all exited with 0, otherwise Failed. `ended` is set if the whole pod was ended for good (by its
// deadline or its deletion).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "kube/object.h"

namespace medley::localcluster {

struct Termination {
  int exit_code = 0;
  int signal = 0;
  std::string reason;  // Completed, Error, OOMKilled, ContainerCannotRun, ContainerStatusUnknown
  std::string message;
  base::WallTime started_at;
  base::WallTime finished_at;
  std::string container_id;
};

struct ContainerView {
  enum class State { kWaiting, kRunning, kTerminated };
  std::string name;
  std::string image;
  std::string image_id;
  std::string container_id;
  State state = State::kWaiting;
  std::string waiting_reason = "ContainerCreating";
  std::string waiting_message;
  base::WallTime started_at;               // kRunning
  std::optional<Termination> termination;  // kTerminated
  std::optional<Termination> last;         // of the previous start
  int restarts = 0;
  bool ready = false;
};

struct PodView {
  std::vector<ContainerView> containers;
  std::vector<ContainerView> init_containers;
  std::string pod_ip;
  std::string host_ip;
  std::optional<base::WallTime> start_time;
  bool ended = false;  // no container will be started again
  std::string reason;  // of a failed pod: DeadlineExceeded, UnsupportedPod
  std::string message;
};

enum class RestartPolicy { kAlways, kOnFailure, kNever };
RestartPolicy RestartPolicyOf(const kube::Object& pod);
bool ShouldRestart(RestartPolicy policy, const Termination& termination);

bool InitDone(const PodView& view);
std::string PodPhase(RestartPolicy policy, const PodView& view);

// The whole status object. Conditions that the node does not own are kept. Transition times change only with the
// condition's status.
kube::Json PodStatus(const kube::Object& pod, const PodView& view, base::WallTime now);

// Sets condition `type` in `conditions`.
void SetCondition(kube::Json& conditions, const std::string& type, bool holds, const std::string& reason,
                  const std::string& message, base::WallTime now);

// The state of a container according to the API, for a node that has just started: a running container becomes
// terminated with ContainerStatusUnknown at `now`.
ContainerView ViewFromStatus(const kube::Json& spec, const kube::Json& statuses, base::WallTime now);

}  // namespace medley::localcluster
