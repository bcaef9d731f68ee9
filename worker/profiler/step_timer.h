// Measures what operations take within training steps, computation only.
//
// The operations run in the order of a step: all forward passes, all backward passes in reverse, then all updates. One
// that is repeated alone finds its parameters in the caches of the processor and seems faster than it is, as in a
// step those of the others push them out.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <stop_token>
#include <vector>

#include "common/base/clock.h"
#include "common/model/execution_plan.h"
#include "worker/data/dataset.h"
#include "worker/device/device.h"
#include "worker/model/compute_threads.h"
#include "worker/model/graph.h"
#include "worker/params/optimizer.h"

namespace medley::worker {

// Operations of a model whose state fits into memory beside the training data, together. Larger models are measured in
// such parts, so that a model that no single machine can hold can be measured.
constexpr int64_t kMeasuredTogetherBytes = int64_t{128} << 20;

// Of a step of `samples`: parts of the graph, in order, each of at least one operation, whose dense parameters,
// optimizer state and outputs take at most kMeasuredTogetherBytes where they have more than one. Pure.
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
  int64_t rows = 0;  // distinct rows of its first table that a step uses
};

struct StepTimerContext {
  const Graph& graph;
  const Dataset& data;
  const Optimizer& optimizer;
  uint64_t seed = 0;
  std::shared_ptr<ComputeThreads> threads;  // null: one
  std::shared_ptr<device::Device> device;   // null: the CPU
  base::Clock& clock;
  std::stop_token stop;
};

// Processor time of this process so far.
double ProcessorSeconds();

// Measures steps of `samples` in `micros` micro-batches, of these operations only, for about `budget` seconds, at least
// one step. Errors: those of making and running the operations, Cancelled.
absl::StatusOr<std::vector<OperationCost>> TimeSteps(const StepTimerContext& context, model::OperationRange range,
                                                     int samples, int micros, double budget);

}  // namespace medley::worker
