// The graph of a model that was exported from PyTorch. Pure, except for ReadGraph, which reads the archive; no torch.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>
#include <vector>

#include "worker/model/graph.h"

namespace medley::worker {

// The operations of the cut program, then the loss of the task. `classes`: as for BuildGraph. Errors: those of
// cut::Divide; InvalidArgument for weights that are not float32, for an input without data or of another shape, for
// outputs that do not fit the task.
absl::StatusOr<Graph> ImportedGraph(const model::JobSpec& spec, std::shared_ptr<const exported::Program> program,
                                    int classes = 0);

// The graph of any model. Reads the file of spec.model.exported or torchScript, whose path is below `root`
// (LoadOptions::root). Errors: those of BuildGraph and ImportedGraph, of exported::ReadArchive and
// torchscript::ReadTorchScript.
absl::StatusOr<Graph> ReadGraph(const model::JobSpec& spec, const std::string& root, int classes = 0);
// The same as it predicts: PredictionGraph.
absl::StatusOr<Graph> ReadPredictionGraph(const model::JobSpec& spec, const std::string& root, int classes = 0);

}  // namespace medley::worker
