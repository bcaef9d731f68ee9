// Measures what operations take within training steps, computation only.
//
// The operations run in the order of a step: all forward passes, all backward passes in reverse, then all updates. One
// that is repeated alone seems faster than it is in a step, probably because it still finds its parameters in the
// caches of the processor (docs/design/profiles.md). The functions share no state.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <stop_token>
#include <vector>

#include "common/base/clock.h"
#include "common/model/forward.h"
#include "worker/data/dataset.h"
#include "worker/model/graph.h"
#include "worker/model/make_block.h"
#include "worker/params/optimizer.h"
#include "worker/pipeline/whole_tables.h"

namespace medley::worker {

// What operations that are measured together may hold, by estimate. A larger model is measured in several parts, so
// that one that no single machine can hold can be measured too.
constexpr int64_t kMeasuredTogetherBytes = int64_t{128} << 20;

// Divides the graph into parts that are measured together, in order, for steps of `samples`. A part has one operation,
// or several that hold at most kMeasuredTogetherBytes: dense parameters `state_factor` + 1 times (gradients, optimizer
// state and the values before the last update), and outputs with their gradients. Pure.
std::vector<model::OperationRange> MeasuredTogether(const Graph& graph, double state_factor, int samples);

// The measured cost of an operation at one batch size, in seconds a step.
struct OperationCost {
  double seconds = 0;
  double spread = 0;             // of `seconds`, relative
  double processor_spread = 0;   // of `processor_seconds`
  double processor_seconds = 0;  // less than `seconds` where a limit or other work holds the operation up
  double burst_seconds = 0;      // of a single step; less than `seconds` where a limit interrupts some of the steps
  double forward_part = 0;       // of passes and update, in [0, 1]
  double update_part = 0;
  int64_t rows = 0;    // distinct rows of its first table that a step uses
  TableCounts tables;  // of all steps, where StepTimerContext::tables has the rows on a device
};

struct StepTimerContext {
  const Graph& graph;
  const Dataset& data;
  const Optimizer& optimizer;
  uint64_t seed = 0;
  std::shared_ptr<ComputeThreads> threads;  // null: one
  std::shared_ptr<device::Device> device;   // null: the CPU
  Precision precision = Precision::kFloat32;
  BlockMaker make_block = MakeModelBlock;
  base::Clock& clock;
  std::stop_token stop;
  // Where tables are. Unspecified: rows come from the host, and their updates belong to servers. Otherwise the device
  // has a table of at most kMostTableBytes, with optimizer state, or a cache, and updates are of the operation. Keys
  // are spread over that table as over the whole one.
  model::Tables tables = {};
};

// More than the caches of a GPU's processors have, and little beside what a profiler holds anyway.
constexpr int64_t kMostTableBytes = int64_t{64} << 20;

// Measures steps of `samples` in `micros` micro-batches, of these operations only, for about `budget` seconds, at least
// one step. Errors: those of making and running the operations, Cancelled.
absl::StatusOr<std::vector<OperationCost>> TimeSteps(const StepTimerContext& context, model::OperationRange range,
                                                     int samples, int micros, double budget);

}  // namespace medley::worker
