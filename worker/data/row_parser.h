// Parses a line into a sample: hashed ids, raw numbers, labels. Not thread-safe (keeps scratch memory).
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <string_view>

#include "common/model/job_spec.h"
#include "worker/data/batch.h"
#include "worker/data/csv.h"
#include "worker/data/label_reader.h"

namespace medley::worker {

// The row of the shared embedding table for `value` in categorical field `field`.
int32_t HashedId(std::string_view value, int field, int64_t embedding_rows);

class RowParser {
 public:
  // `schema` must outlive the parser. Without label columns the rows have no labels, and 0 is appended as theirs.
  // `classes`: those of LabelReader.
  RowParser(const model::SchemaSpec& schema, char delimiter, int64_t embedding_rows,
            std::vector<std::string> classes = {});

  // Appends the sample to `rows`. Numerics are raw; a missing value (empty, "?", "NULL", "NA") is NaN. Ids of bucketed
  // columns are 0 until the transform is known. On error (InvalidArgument naming the column) appends nothing.
  absl::Status Append(std::string_view line, Batch& rows);
  size_t found() const { return fields_.values.size(); }  // columns of the last line; 0 when it could not be split

  LabelReader& labels() { return labels_; }
  size_t columns() const { return columns_; }  // least number of columns in a line

 private:
  const model::SchemaSpec& schema_;
  const char delimiter_;
  const int64_t embedding_rows_;
  const SampleShape shape_;
  size_t columns_ = 0;
  CsvFields fields_;
  std::vector<float> numbers_;
  std::vector<int32_t> ids_;
  LabelReader labels_;
};

}  // namespace medley::worker
