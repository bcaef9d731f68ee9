#include "worker/data/row_parser.h"

#include <algorithm>
#include <utility>

#include "common/base/hash.h"
#include "common/base/status.h"
#include "worker/data/number.h"
#include "worker/data/schema.h"

namespace medley::worker {
namespace {

size_t ColumnsOf(const model::SchemaSpec& schema) {
  int last = schema.label_column;
  for (const int column : schema.label_columns) last = std::max(last, column);
  for (const int column : schema.categorical) last = std::max(last, column);
  for (const int column : schema.numeric) last = std::max(last, column);
  return static_cast<size_t>(last) + 1;
}

}  // namespace

int32_t HashedId(std::string_view value, int field, int64_t embedding_rows) {
  return static_cast<int32_t>(base::Hash64(value, static_cast<uint64_t>(field)) %
                              static_cast<uint64_t>(embedding_rows));
}

RowParser::RowParser(const model::SchemaSpec& schema, char delimiter, int64_t embedding_rows,
                     std::vector<std::string> classes)
    : schema_(schema),
      delimiter_(delimiter),
      embedding_rows_(embedding_rows),
      shape_(ShapeOf(schema)),
      columns_(ColumnsOf(schema)),
      labels_(schema, std::move(classes)) {}

absl::Status RowParser::Append(std::string_view line, Batch& rows) {
  if (const absl::Status split = SplitCsv(line, delimiter_, fields_); !split.ok()) {
    fields_.values.clear();
    return split;
  }
  if (fields_.values.size() < columns_) {
    return base::InvalidArgument("the line has {} columns, the schema needs {}", fields_.values.size(), columns_);
  }
  const auto value = [&](int column) { return fields_.values[static_cast<size_t>(column)]; };
  numbers_.clear();
  for (const int column : schema_.numeric) {
    MEDLEY_RETURN_IF_ERROR(ReadNumber(value(column), column, numbers_.emplace_back()));
  }
  MEDLEY_RETURN_IF_ERROR(labels_.Append(fields_, rows.labels));
  for (size_t field = 0; field < schema_.categorical.size(); ++field) {
    rows.ids.push_back(HashedId(value(schema_.categorical[field]), static_cast<int>(field), embedding_rows_));
  }
  rows.ids.resize(rows.ids.size() + static_cast<size_t>(shape_.fields) - schema_.categorical.size());
  rows.numerics.insert(rows.numerics.end(), numbers_.begin(), numbers_.end());
  ++rows.samples;
  return absl::OkStatus();
}

}  // namespace medley::worker
