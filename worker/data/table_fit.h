// What is learnt from the parsed rows of a table before they are encoded, and what is refused. Rows may be in a file:
// every function can fail as TableRows does.
#pragma once

#include <absl/status/statusor.h>

#include <stop_token>
#include <string>
#include <vector>

#include "common/model/job_spec.h"
#include "worker/data/source.h"
#include "worker/data/table_rows.h"
#include "worker/data/transform.h"

namespace medley::worker {

// Numbers the labels of Task::kMultiClass by the classes that occur in any piece, sorted; returns these. `path`: of the
// data, for messages. Errors: InvalidArgument when there are too many.
absl::StatusOr<std::vector<std::string>> NumberClasses(TableRows& rows, const std::string& path);

// Fits the transform on the rows for training.
absl::StatusOr<Transform> FitTransform(const TableRows& rows, const model::SchemaSpec& schema, LabelTransform label);

absl::StatusOr<bool> HasBothLabels(const TableRows& rows);

// Task::kBinary: the table's status, or an error that names the values of the label column when these are why rows
// cannot be used.
absl::Status CheckClasses(const TableRows& rows, const SourceFile& file, const model::SchemaSpec& schema,
                          std::stop_token stop);

// Some row of the set must count. `path`: for the message.
absl::Status CheckWeights(const TableRows& rows, RowSet set, const std::string& path, const model::SchemaSpec& schema);

// The labels of the training data differ, for tasks other than kBinary.
absl::Status CheckDiffer(const TableRows& rows, const std::string& path, const model::SchemaSpec& schema,
                         const std::vector<std::string>& classes);

}  // namespace medley::worker
