// Parses a record into a sample: hashed ids, raw numbers, labels. Not thread-safe (keeps scratch memory).
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "common/model/job_spec.h"
#include "worker/data/batch.h"
#include "worker/data/csv.h"
#include "worker/data/date.h"
#include "worker/data/label_reader.h"
#include "worker/data/number.h"

namespace medley::worker {

// The row of the shared embedding table for `value` in categorical field `field`.
int32_t HashedId(std::string_view value, int field, int64_t embedding_rows);

// Whether a number can be the weight of a row.
bool IsWeight(double weight);

// Rows as they were read, before any transform: numbers have double precision, so that those that are large and differ
// little, such as seconds since 1970, still differ when they are standardised. Otherwise as Batch.
struct ParsedRows {
  int samples = 0;
  std::vector<int32_t> ids;
  std::vector<double> numerics;  // NaN: missing
  std::vector<double> labels;
  std::vector<double> weights;  // samples, or none
};

// The least number of columns that the schema needs.
size_t ColumnsOf(const model::SchemaSpec& schema);

class RowParser {
 public:
  // `schema` must outlive the parser. Without label columns the rows have no labels, and 0 is appended as theirs.
  // `classes`: those of LabelReader. `width`: the number of fields of every row; 0: at least columns().
  RowParser(const model::SchemaSpec& schema, char delimiter, int64_t embedding_rows,
            std::vector<std::string> classes = {}, size_t width = 0);

  // Appends the sample to `rows`. Ids of bucketed columns are 0 until the transform is known. On error (InvalidArgument
  // naming the column, or "expected 15 columns, found 14") appends nothing.
  absl::Status Append(std::string_view record, ParsedRows& rows);
  // The same for a record whose fields the caller has put into `fields`.
  absl::Status AppendFields(ParsedRows& rows);
  CsvFields& fields() { return fields_; }
  size_t found() const { return fields_.values.size(); }  // fields of the last record; 0 when it could not be split

  LabelReader& labels() { return labels_; }
  size_t columns() const { return columns_; }  // least number of columns in a row

 private:
  absl::Status AppendValues(ParsedRows& rows);
  absl::Status ReadDate(std::string_view text, int column, model::ColumnPart part, double& number);

  const model::SchemaSpec& schema_;
  const char delimiter_;
  const int64_t embedding_rows_;
  const SampleShape shape_;
  const ValueReader values_;
  size_t columns_ = 0;
  const size_t width_;
  CsvFields fields_;
  std::optional<DateTime> date_;  // that was read last; nothing when it was missing
  LabelReader labels_;
};

}  // namespace medley::worker
