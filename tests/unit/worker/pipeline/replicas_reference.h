// Data-parallel training whose replicas differ, in one process: each replica, or group of them, changes its parameters
// with the mean gradient of its own samples. After the steps that agree, the mean of parameters and optimizer states
// over all replicas replaces theirs.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "common/model/job_spec.h"
#include "worker/data/dataset.h"

namespace medley::worker::testing {

struct ReferenceReplicas {
  std::vector<double> shares;               // of every batch
  std::vector<std::vector<size_t>> groups;  // that add their gradients in every step; each replica is in one
};

// `replicas`: by the first step that they compute; replicas agree before it. The mean loss of each of the first `steps`
// steps. The model has no tables.
std::vector<double> ReferenceLosses(const model::JobSpec& job, const Dataset& data,
                                    const std::map<int64_t, ReferenceReplicas>& replicas,
                                    const std::set<int64_t>& agreements, int64_t steps);

}  // namespace medley::worker::testing
