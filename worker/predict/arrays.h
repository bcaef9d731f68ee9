// Predictions and the quality of a model from PyTorch on files of arrays (idx, npy, raw). Thread-safe.
#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "worker/export/read_export.h"
#include "worker/predict/predict.h"

namespace medley::worker {

// Where the arrays are: `files` is one path for a model with one input, or NAME=PATH for each; in the format of the
// training data. `labels`: a path; empty for predictions, and for task ownLoss. Errors: InvalidArgument naming the
// inputs of the model.
absl::StatusOr<model::SourceSpec> ArraySourceOf(const ExportedModel& model, const std::vector<std::string>& files,
                                                const std::string& labels);

// Writes one line a sample, as Predict does for rows. Errors: those of ReadArrays, of `write`, and of Compute.
absl::StatusOr<int64_t> PredictArrays(const LoadedModel& model, const model::SourceSpec& source,
                                      absl::FunctionRef<absl::Status(std::string_view)> write,
                                      const RowOptions& options = {});

// As EvaluateQuality does for rows.
absl::StatusOr<Quality> EvaluateArrays(const LoadedModel& model, const model::SourceSpec& source,
                                       const RowOptions& options = {});

}  // namespace medley::worker
