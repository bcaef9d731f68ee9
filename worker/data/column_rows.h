// Parses rows of a batch of columns (worker/columns) into samples, as RowParser parses those of a text with the same
// values. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/model/job_spec.h"
#include "worker/columns/column_file.h"
#include "worker/data/row_parser.h"

namespace medley::worker {

// The columns that the schema reads, each once, in rising order.
std::vector<int> ColumnsRead(const model::SchemaSpec& schema);

class ColumnRows {
 public:
  // `schema` must outlive this object. Batches have the columns of ColumnsRead. `classes`: those of LabelReader.
  ColumnRows(const model::SchemaSpec& schema, int64_t embedding_rows, std::vector<std::string> classes);

  // Appends rows [begin, end) of the batch to `rows`, and calls `bad` with the number of each row that cannot be read.
  using Bad = std::function<void(int64_t row, const absl::Status& why)>;
  void Append(const ColumnBatch& batch, int64_t begin, int64_t end, ParsedRows& rows, const Bad& bad);
  LabelReader& labels() { return parser_.labels(); }

 private:
  // Column by column; false, and nothing appended, when some value needs more than that, or a row cannot be read.
  bool AppendColumns(const ColumnBatch& batch, int64_t begin, int64_t end, ParsedRows& rows);
  bool ReadNumbers(const ColumnValues& values, int64_t begin, int64_t end, double* to, size_t stride) const;
  bool ReadIds(const ColumnValues& values, int64_t begin, int64_t end, size_t field, int32_t* to, size_t stride);
  bool ReadLabels(const ColumnBatch& batch, int64_t row, std::vector<double>& labels);
  const ColumnValues& Of(const ColumnBatch& batch, int column) const;
  void FillField(const ColumnBatch& batch, int column, int64_t row);

  const model::SchemaSpec& schema_;
  const int64_t embedding_rows_;
  const std::vector<int> columns_;
  std::vector<size_t> places_;  // of a column of the file among columns_
  std::vector<int> label_columns_;
  const ValueReader values_;
  RowParser parser_;
  std::vector<std::string> texts_;  // of a row, by place
  std::vector<int32_t> ids_;        // of the texts of a dictionary; -1: not hashed yet
};

}  // namespace medley::worker
