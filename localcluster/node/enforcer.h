// Enforces the CPU and memory limits of processes. Thread-safe.
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

namespace medley::localcluster {

// The limits of one start of one container. Not thread-safe. The destructor kills the remaining processes that it can
// identify and removes what it has created.
class Enforcement {
 public:
  virtual ~Enforcement() = default;
  virtual void Prepare(SpawnSpec& spec) const = 0;
  virtual void Attach(std::shared_ptr<Process> process) = 0;
  // From now on the processes may use this many cores; nullopt: all. Errors: those of the cgroup's file.
  virtual absl::Status SetCores(std::optional<double> cores) = 0;
  // True if a process was killed because it ran out of memory.
  virtual bool OutOfMemory() = 0;
};

class Enforcer {
 public:
  virtual ~Enforcer() = default;
  // `id`: unique and usable as a file name. `limits` may be empty.
  virtual absl::StatusOr<std::unique_ptr<Enforcement>> Apply(const std::string& id, const Limits& limits) = 0;
  virtual std::string name() const = 0;
};

// Chooses cgroups or measuring, by `policy`. `instance` is the node's name, usable as a file name; processes that an
// earlier start left in cgroups of this name are killed and the cgroups removed. Errors: FailedPrecondition
// (kRequired).
absl::StatusOr<std::unique_ptr<Enforcer>> MakeEnforcer(CgroupPolicy policy, const std::string& instance,
                                                       base::nanoseconds cpu_period, base::Clock& clock);

}  // namespace medley::localcluster
