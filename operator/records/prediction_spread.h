// How much a predicted throughput may be wrong, as far as the profiler can know it. Pure.
#pragma once

#include "common/model/forward.h"

namespace medley::ops {

// The relative standard deviation of the slowest stage's compute time in the running plan, from the spread that the
// profiler measured for each layer and pool; 0: unknown.
double PredictionSpread(const model::Model& model, const model::ExecutionPlan& plan);

}  // namespace medley::ops
