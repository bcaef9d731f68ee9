// The fields of a line to a sample: hashed ids, raw numbers, label. Not thread-safe (keeps scratch
// memory).
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <string_view>

#include "common/model/job_spec.h"
#include "worker/data/batch.h"
#include "worker/data/csv.h"

namespace medley::worker {

// The row of the shared embedding table for `value` in categorical field `field`.
int32_t HashedId(std::string_view value, int field, int64_t embedding_rows);

class RowParser {
 public:
  // `schema` outlives it.
  RowParser(const model::SchemaSpec& schema, char delimiter, int64_t embedding_rows);

  // Appends the sample to `rows`: numerics are raw (NaN where missing: empty, "?", "NULL", "NA"),
  // ids of bucketed columns are 0 until the transform is known. Nothing is appended on error
  // (InvalidArgument naming the column).
  absl::Status Append(std::string_view line, Batch& rows);

 private:
  absl::Status ReadLabel(std::string_view text, float& label) const;

  const model::SchemaSpec& schema_;
  const char delimiter_;
  const int64_t embedding_rows_;
  const SampleShape shape_;
  size_t columns_ = 0;  // that a line must have
  CsvFields fields_;
  std::vector<float> numbers_;
};

}  // namespace medley::worker
