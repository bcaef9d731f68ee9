// Groups of operations that get one strategy (HeteroG, section 4.1.1). Pure.
#pragma once

#include <vector>

#include "scheduler-service/devices/problem.h"

namespace medley::sched {

struct OperationGroups {
  std::vector<int> group_of;              // by operation
  std::vector<std::vector<int>> members;  // by group, ascending
  int count() const { return static_cast<int>(members.size()); }
};

// At most `most` groups, at least 1: one around each of the operations that take longest on the mean of all devices, of
// equal ones the first. Every other operation joins the group that is the fewest edges away, of equally near ones that
// with the longest such operation; where no edges lead to one, the group of the operation before it. Groups are in the
// order of their first operation.
OperationGroups GroupOperations(const DeviceProblem& problem, int most);

}  // namespace medley::sched
