// Predictions and the quality of an exported model on the rows of a CSV file. Thread-safe; each call has its own state.
#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "worker/export/read_export.h"
#include "worker/predict/row_stream.h"

namespace medley::worker {

// Writes one line a row, the probability of label 1, in the order of the rows; returns the number of rows. `write` gets
// pieces of some kilobytes. Errors: those of RowStream, InvalidArgument for data without rows, those of `write`.
absl::StatusOr<int64_t> Predict(const LoadedModel& model, const std::string& name, RowStream::Read read,
                                absl::FunctionRef<absl::Status(std::string_view)> write);

struct Quality {
  int64_t rows = 0;
  int64_t positives = 0;  // rows with label 1
  double auc = 0;         // 0.5 when only one class occurs
  double log_loss = 0;
  double accuracy = 0;  // of the label that is more probable
};

// Computed as at the end of a training: auc and log loss are those that the job reports for the same data. Errors:
// those of RowStream, InvalidArgument for data without rows.
absl::StatusOr<Quality> EvaluateQuality(const LoadedModel& model, const std::string& name, RowStream::Read read);

}  // namespace medley::worker
