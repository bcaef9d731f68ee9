// Predictions and the quality of an exported model on the rows of a CSV file. Thread-safe; each call has its own state.
#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "worker/export/read_export.h"
#include "worker/predict/row_stream.h"

namespace medley::worker {

// Writes one line a row, in the order of the rows; returns the number of rows. `write` gets pieces of some kilobytes.
// Errors: those of RowStream, InvalidArgument for data without rows, those of `write`.
//
//   binary      the probability of label 1
//   regression  the number
//   multiClass  the most probable class and its probability; with `all` the probabilities of all classes
//   multiLabel  the probability of 1 in each label column
absl::StatusOr<int64_t> Predict(const LoadedModel& model, const std::string& name, RowStream::Read read,
                                absl::FunctionRef<absl::Status(std::string_view)> write, bool all = false);

struct Quality {
  int64_t rows = 0;
  int64_t positives = 0;                  // binary: rows with label 1
  std::map<std::string, double> metrics;  // of the task, by the names of MetricsOf (worker/scores/scores.h)
};

// Computed as at the end of a training: the metrics are those that the job reports for the same data. Errors: those of
// RowStream, InvalidArgument for data without rows.
absl::StatusOr<Quality> EvaluateQuality(const LoadedModel& model, const std::string& name, RowStream::Read read);

}  // namespace medley::worker
