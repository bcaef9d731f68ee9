// The graph of a job whose training data have been read. Pure, but that it reads the archive of an exported model.
#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "common/model/job_spec.h"
#include "worker/data/dataset.h"
#include "worker/model/graph.h"

namespace medley::worker {

// ReadGraph with what only the training data tell: the number of classes, and the rows of each for balanced weights.
// `root`: as for ReadGraph. Errors: those of ReadGraph and CheckRows; InvalidArgument for the weight of a class that
// the data do not have.
absl::StatusOr<Graph> FitGraph(const model::JobSpec& spec, const Dataset& train, const std::string& root = "");

// Whether the data's numbers are rows of the tables of a model from PyTorch; those of other models are hashed into
// their tables. Errors: InvalidArgument that names the table, the sample and the number.
absl::Status CheckRows(const Graph& graph, const Dataset& data);

}  // namespace medley::worker
