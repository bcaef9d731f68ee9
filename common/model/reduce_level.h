// One level of a reduction over replicas that are arranged in groups.
#pragma once

#include <vector>

#include "common/model/allreduce_algorithm.h"

namespace medley::model {

// The members of each group add among themselves. The first of each group, its leader, is in a group of the next level.
struct ReduceLevel {
  std::vector<std::vector<int>> groups;  // replica indices or ranks, ascending; no one is in two groups
  AllreduceAlgorithm algorithm = AllreduceAlgorithm::kRing;  // never kAuto
  bool operator==(const ReduceLevel&) const = default;
};

}  // namespace medley::model
