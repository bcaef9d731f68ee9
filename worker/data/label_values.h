// The values of the label column of a binary classification and how often each occurs: tells a user why a file has
// samples of one class only. And a first look at the labels of a file, for every task.
//
// Not thread-safe.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <map>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "common/model/job_spec.h"
#include "worker/data/csv.h"
#include "worker/data/label_reader.h"
#include "worker/data/source.h"

namespace medley::worker {

class LabelValues {
 public:
  // `schema` must outlive this object.
  LabelValues(const model::SchemaSpec& schema, char delimiter) : schema_(schema), delimiter_(delimiter) {}

  enum class Until { kEnd, kBothClasses };

  // Counts the labels of the files that `file` means, to their end or until both classes have occurred. Errors: those
  // of FindFiles, ForEachRecord and FindColumns; Cancelled.
  absl::Status AddFiles(const SourceFile& file, Until until, std::stop_token stop);
  // Counts the label of a row. Ignores a row that is blank, cannot be split or has no label.
  void Add(std::string_view row) { Add(row, schema_.label_column); }
  bool HasEitherClass() const { return positives_ > 0 || negatives_ > 0; }
  bool HasBothClasses() const { return positives_ > 0 && negatives_ > 0; }
  // OK when both classes occur or when there are no labels at all. Otherwise InvalidArgument that begins with `path`
  // and names the most frequent values with their counts.
  absl::Status Check(std::string_view path) const;
  // `"no" (2610 rows), "yes" (1390 rows) and 12 other values (24 rows)`.
  std::string Describe() const;

 private:
  void Add(std::string_view row, int label_column);

  const model::SchemaSpec& schema_;
  const char delimiter_;
  CsvFields fields_;
  int64_t positives_ = 0;
  int64_t negatives_ = 0;
  std::map<std::string, int64_t, std::less<>> rows_;  // by value; at most kMostValues
  int64_t more_rows_ = 0;                             // with values that are not in rows_
};

// Task::kBinary: checks that both classes occur in the file. Others: that the labels of some row can be read; `classes`
// are those of the training data. `header`: the names of all columns of the training data, if they are known. Reads
// only as much as it needs. Errors: those of LabelValues::Check and LabelReader;
// NotFound; InvalidArgument (a URI without file:///); Unimplemented (format); Cancelled. Arrays: those of CheckArrays.
absl::Status CheckLabels(const model::SourceSpec& source, const model::DataSpec& spec,
                         const std::vector<std::string>& classes, const std::string& root, std::stop_token stop,
                         const std::vector<std::string>& header = {});

}  // namespace medley::worker
