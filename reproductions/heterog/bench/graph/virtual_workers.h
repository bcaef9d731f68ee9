// HetPipe's virtual workers where they are unlike: seconds without a plan, because plans have no unlike pipelines.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <string>
#include <vector>

#include "scheduler-service/devices/problem.h"
#include "scheduler-service/planning/planner.h"

namespace medley::reproductions::heterog {

inline constexpr size_t kMostMachines = 8;

struct VirtualWorkers {
  double seconds = sched::kForever;               // of as many samples as a step has, computed by all together
  std::vector<std::vector<std::string>> workers;  // the machines of each; a machine of none is not used
};

// Among all partitions of the machines into virtual workers, the one with the most samples a second. HetPipe (Park and
// others 2020) has three: a machine each (node partition), the same of every kind (equal distribution,
// planner `hetpipe`), and pairs of equal power (hybrid). Here a virtual worker is one machine or several, and its
// pipeline the best of planner `hetpipe` on its devices. Virtual workers do not wait for one another, so their samples
// a second add up. What they send to servers of parameters is not counted: real ones are slower.
// Errors: InvalidArgument for more than kMostMachines machines. Where the limits end it, what was found.
absl::StatusOr<VirtualWorkers> BestVirtualWorkers(const sched::DeviceProblem& problem, const sched::Budget& limits);

}  // namespace medley::reproductions::heterog
