// Merges the sequences of the segments of a pipeline into one order, as if every pass took the same time.
#pragma once

#include <functional>

#include "common/program/order.h"

namespace medley::program {

// How far the forward pass of a segment of depth `depth` runs ahead of its backward pass, in micro-batches.
using WarmUp = std::function<int(int depth)>;

// `across_steps`: the forward passes of a step may start before the backward passes of the one before have ended;
// otherwise the segments are empty between steps.
std::vector<Action> PipelineOrder(const Shape& shape, const WarmUp& warm_up, bool across_steps);

}  // namespace medley::program
