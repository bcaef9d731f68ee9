// The status of a pod as a kubelet reports it, from what is known of its containers. Pure.
//
// Pod phase: Pending until every container has started once; Running while one runs or will again;
// then Succeeded if all ended with 0, else Failed. A pod that was told to end for good (deadline,
// deletion) has `ended` set.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "kube/object.h"

namespace medley::kube {

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
  std::optional<Termination> last;         // of the start before
  int restarts = 0;
  bool ready = false;
};

struct PodView {
  std::vector<ContainerView> containers;
  std::vector<ContainerView> init_containers;
  std::string pod_ip;
  std::string host_ip;
  std::optional<base::WallTime> start_time;
  bool ended = false;  // nothing will be started again
  std::string reason;  // of a failed pod: DeadlineExceeded, UnsupportedPod
  std::string message;
};

enum class RestartPolicy { kAlways, kOnFailure, kNever };
RestartPolicy RestartPolicyOf(const Object& pod);
bool ShouldRestart(RestartPolicy policy, const Termination& termination);

bool InitDone(const PodView& view);
std::string PodPhase(RestartPolicy policy, const PodView& view);

// The whole status object. Conditions that are not the node's own are kept; transition times change only
// with the condition's status.
Json PodStatus(const Object& pod, const PodView& view, base::WallTime now);

// `conditions` with `type` set to it.
void SetCondition(Json& conditions, const std::string& type, bool holds, const std::string& reason,
                  const std::string& message, base::WallTime now);

// What a container was doing according to the API, for a node that has forgotten it: running becomes
// terminated with ContainerStatusUnknown at `now`.
ContainerView ViewFromStatus(const Json& spec, const Json& statuses, base::WallTime now);

}  // namespace medley::kube
