// The graph of a job whose training data have been read. Pure.
#pragma once

#include <absl/status/statusor.h>

#include "common/model/job_spec.h"
#include "worker/data/dataset.h"
#include "worker/model/graph.h"

namespace medley::worker {

// BuildGraph with what only the training data tell: the number of classes, and the rows of each for balanced weights.
// Errors: those of BuildGraph; InvalidArgument for the weight of a class that the data do not have.
absl::StatusOr<Graph> FitGraph(const model::JobSpec& spec, const Dataset& train);

}  // namespace medley::worker
