// Training with asynchronous pipelines in one process, from PipeDream's equation alone: no program, no executor.
//
// Stage i of S with M micro-batches computes step s, forward and backward, with its parameters after step
// max(d, s - k), where k = min(1 + ceil((S - i - 1) / M), max staleness + 1) and d is the last drain before s. Its
// gradients change the newest parameters, those after step s - 1.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "common/model/job_spec.h"
#include "common/model/operation_range.h"
#include "worker/data/dataset.h"

namespace medley::worker::testing {

struct ReferencePipeline {
  std::vector<model::OperationRange> stages;
  int micro_batches = 1;
  int max_staleness = 0;     // 0: no limit
  bool synchronous = false;  // k = 1 everywhere
};

struct ReferenceRun {
  std::map<int64_t, ReferencePipeline> pipelines;  // by the first step that each computes; a drain precedes it
  std::set<int64_t> drains;                        // further steps that all stages had applied before the next began
};

// The mean loss of each of the first `steps` steps.
std::vector<double> ReferenceLosses(const model::JobSpec& job, const Dataset& data, const ReferenceRun& run,
                                    int64_t steps);

}  // namespace medley::worker::testing
