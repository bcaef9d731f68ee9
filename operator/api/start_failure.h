// Why a pod that was created does not start: what `kubectl describe pod` shows, as one sentence. Pure.
#pragma once

#include <optional>
#include <string>

#include "common/base/clock.h"
#include "kube/object.h"

namespace medley::ops {

struct StartFailure {
  enum class Kind {
    kNoNode,   // the scheduler does not bind it; lifecycle/placement.h has deadlines of its own
    kRefused,  // the kubelet says that a container cannot start, and tries again without end
    kSlow,     // its containers are being created for longer than usual
  };
  Kind kind = Kind::kRefused;
  std::string reason;      // "ErrImagePull", "CreateContainerConfigError", "Unschedulable", "ContainerCreating"
  base::WallTime since{};  // kSlow: when the pod got its node
  std::string message;     // without the pod's name, without a full stop; at most about 400 bytes
};

// A pod with a node whose containers are not created within this time is slow: volumes that cannot be mounted are
// not in its status.
inline constexpr base::nanoseconds kUsualStart = base::seconds(45);

// nullopt: the worker's container has started, or nothing hinders the pod yet. `now`: by the clock of the API server's
// timestamps.
std::optional<StartFailure> StartFailureOf(const kube::Object& pod, base::WallTime now);

// True when the worker's container has ever run, whatever became of it.
bool HasStarted(const kube::Object& pod);

}  // namespace medley::ops
