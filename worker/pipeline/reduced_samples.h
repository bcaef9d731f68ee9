// Over how many samples the gradients of a block are a mean. Pure.
#pragma once

#include "common/program/program.h"
#include "common/program/samples.h"

namespace medley::worker {

// For a batch of `count` samples, whose parts `binding` knows: those of the replicas that add their gradients to those
// of `replica`.
int ReducedSamples(const program::Program& program, const program::Binding& binding, int block, int replica, int count);

}  // namespace medley::worker
