// Predictions and the quality of an exported model on the rows of a CSV file. Thread-safe; each call has its own state.
#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "worker/data/read_progress.h"
#include "worker/export/read_export.h"
#include "worker/predict/row_stream.h"

namespace medley::worker {

// Rows that could not be read.
struct BadRows {
  int64_t count = 0;
  std::string first;  // "data.csv:17: expected 15 columns, found 14"
};

// The rows of a file.
struct RowSource {
  std::string name;  // for messages
  RowStream::Read read;
};

struct RowOptions {
  std::optional<int64_t> max_bad_rows;  // that are accepted; without it as many as the job accepted
  ReadProgress* progress = nullptr;     // counts the rows; may be null
  bool all = false;                     // Predict
};

// Writes one line a row, in the order of the rows; returns the number of predictions. `write` gets pieces of some
// kilobytes. A row that cannot be read has an empty line, so that lines and rows stay side by side. Errors: those of
// RowStream, InvalidArgument for data without rows, those of `write`.
//
//   binary      the probability of label 1
//   regression  the number
//   multiClass  the most probable class and its probability; with `all` the probabilities of all classes
//   multiLabel  the probability of 1 in each label column
absl::StatusOr<int64_t> Predict(const LoadedModel& model, const RowSource& data,
                                absl::FunctionRef<absl::Status(std::string_view)> write, const RowOptions& options = {},
                                BadRows* bad_rows = nullptr);

struct Quality {
  int64_t rows = 0;
  int64_t positives = 0;  // binary: rows with label 1
  BadRows bad_rows;       // which were left out
  // For binary (at probability 0.5) and multiClass: how often class i was predicted as class j, at i * classes + j.
  // Empty for others, and for too many classes.
  std::vector<int64_t> confusion;
  bool weighted = false;  // by spec.data.weight: the metrics count each row with its weight, `confusion` does not
  bool poorly_calibrated = false;         // binary: probabilities are not to be read as such (kPoorCalibration)
  std::map<std::string, double> metrics;  // of the task, by the names of MetricsOf (worker/scores/scores.h)
};

// Computed as at the end of a training: the metrics are those that the job reports for the same data, which are the
// rows of all files. Rows that cannot be read are left out. Errors: those of RowStream, InvalidArgument for data
// without rows.
absl::StatusOr<Quality> EvaluateQuality(const LoadedModel& model, const std::vector<RowSource>& data,
                                        const RowOptions& options = {});

}  // namespace medley::worker
