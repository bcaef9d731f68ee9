#include "tests/bench/pool_quotas.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <utility>

namespace medley::bench {

PoolQuotas::PoolQuotas(std::map<std::string, double> cores, base::nanoseconds period, base::Clock& clock)
    : cores_(std::move(cores)),
      enforcer_(localcluster::MakeEnforcer(localcluster::CgroupPolicy::kRequired, fmt::format("bench-{}", getpid()),
                                           period, clock)) {}

void PoolQuotas::Place(const std::string& pool, pid_t process) {
  const auto cores = cores_.find(pool);
  if (cores == cores_.end()) return;
  auto enforcement = (*enforcer_)->Apply(fmt::format("{}", process), {.cores = cores->second});
  ASSERT_TRUE(enforcement.ok()) << enforcement.status();
  localcluster::SpawnSpec spec;
  (*enforcement)->Prepare(spec);
  for (const std::string& file : spec.cgroup_procs) std::ofstream(file) << process;
  placed_.push_back(*std::move(enforcement));
}

}  // namespace medley::bench
