// CPU quotas of processes by their pool, for benches. Not thread-safe. Needs writable cgroups.
#pragma once

#include <absl/status/status.h>
#include <sys/types.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "localcluster/node/enforcer.h"

namespace medley::bench {

class PoolQuotas {
 public:
  // `cores`: of each process of a pool; processes of other pools have no quota. `period`: of the quotas. The clock must
  // outlive it.
  PoolQuotas(std::map<std::string, double> cores, base::nanoseconds period, base::Clock& clock);

  // Whether quotas can be set at all.
  absl::Status status() const { return enforcer_.status(); }
  // Moves a running process into a cgroup of its own. Failures are those of the test.
  void Place(const std::string& pool, pid_t process);
  // Ends the processes and removes the cgroups.
  void Clear() { placed_.clear(); }

 private:
  const std::map<std::string, double> cores_;
  absl::StatusOr<std::unique_ptr<localcluster::Enforcer>> enforcer_;
  std::vector<std::unique_ptr<localcluster::Enforcement>> placed_;
};

}  // namespace medley::bench
