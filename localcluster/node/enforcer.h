// Holds processes to their limits of cpu and memory. Thread-safe.
//
//   enforcer.Apply -> Enforcement.Prepare(spec) -> Supervisor.Run(spec) -> Attach(process) -> ~Enforcement
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <memory>
#include <string>

#include "common/base/clock.h"
#include "localcluster/node/process_node.h"
#include "localcluster/node/resource_limits.h"
#include "localcluster/node/supervisor.h"

namespace medley::kube {

// Of one start of one container. Not thread-safe. The destructor ends what is left of the processes that
// it can tell apart, and removes what was made.
class Enforcement {
 public:
  virtual ~Enforcement() = default;
  virtual void Prepare(SpawnSpec& spec) const = 0;
  virtual void Attach(std::shared_ptr<Process> process) = 0;
  // Has a process been killed for want of memory?
  virtual bool OutOfMemory() = 0;
};

class Enforcer {
 public:
  virtual ~Enforcer() = default;
  // `id`: unique, usable as a file name. No limits at all is allowed.
  virtual absl::StatusOr<std::unique_ptr<Enforcement>> Apply(const std::string& id, const Limits& limits) = 0;
  virtual std::string name() const = 0;
};

// By policy: cgroups, else measured use. `instance`: of the node, usable as a file name; what an earlier
// life left in cgroups of this name is killed and removed. Errors: FailedPrecondition (kRequired).
absl::StatusOr<std::unique_ptr<Enforcer>> MakeEnforcer(CgroupPolicy policy, const std::string& instance,
                                                       base::nanoseconds cpu_period, base::Clock& clock);

}  // namespace medley::kube
