// How many threads this process computes with: its unit's CPUs. More threads than CPUs make it slower.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "worker/app/environment.h"

namespace medley::worker {

// What is known about the CPUs that this process may use.
struct CpuFacts {
  std::optional<int> wanted;  // OMP_NUM_THREADS: the operator sets it to the unit's CPUs; pools and templates may, too
  std::optional<double> quota;  // CPUs of the cgroup's limit
  int allowed = 1;              // CPUs that the process may run on
};

// A limit of the processor time of a cgroup.
struct CpuQuota {
  double cores = 0;
  double period_seconds = 0;  // in which the cgroup may use that part of a period
  bool operator==(const CpuQuota&) const = default;
};

// At least 1. Never more than the quota (rounded down) and the CPUs allowed. Without `wanted`, the quota; without both,
// 1, because the machine may be shared with other units. Pure.
int ThreadsFor(const CpuFacts& facts);

// A cgroup v2 limit, the text of cpu.max ("400000 100000", "max 100000", microseconds); nullopt: no limit. Pure.
std::optional<CpuQuota> ParseCpuMax(std::string_view text);

// The smallest limit of the process's cgroup and the cgroups above it (v2, or v1's cpu controller). `root` stands for
// "/", so that tests can use a folder of their own.
std::optional<CpuQuota> CgroupQuota(const std::filesystem::path& root);

// ThreadsFor with the facts of this process.
int UnitThreads(const GetVariable& get);

}  // namespace medley::worker
