// Enforces limits by cgroups: the CFS quota and memory controller of v1 or v2. Thread-safe.
#pragma once

#include "localcluster/node/cgroup_layout.h"
#include "localcluster/node/enforcer.h"

namespace medley::localcluster {

class CgroupEnforcer final : public Enforcer {
 public:
  // Kills the processes in old cgroups of `instance`, recreates the cgroups and tests whether they work.
  // Errors: FailedPrecondition names the file that could not be written.
  static absl::StatusOr<std::unique_ptr<CgroupEnforcer>> Make(const CgroupLayout& layout, const std::string& instance,
                                                              base::nanoseconds cpu_period, base::Clock& clock);
  ~CgroupEnforcer() override;

  absl::StatusOr<std::unique_ptr<Enforcement>> Apply(const std::string& id, const Limits& limits) override;
  std::string name() const override { return unified_ ? "cgroup v2" : "cgroup v1"; }

 private:
  CgroupEnforcer(bool unified, std::vector<std::filesystem::path> folders, base::nanoseconds cpu_period,
                 base::Clock& clock)
      : unified_(unified), folders_(std::move(folders)), cpu_period_(cpu_period), clock_(clock) {}
  absl::Status TryOut();

  const bool unified_;
  const std::vector<std::filesystem::path> folders_;  // v2: one; v1: cpu, memory
  const base::nanoseconds cpu_period_;
  base::Clock& clock_;
};

}  // namespace medley::localcluster
