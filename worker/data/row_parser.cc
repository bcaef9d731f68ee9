#include "worker/data/row_parser.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "common/base/hash.h"
#include "common/base/status.h"
#include "worker/data/label_values.h"
#include "worker/data/schema.h"

namespace medley::worker {
namespace {

size_t ColumnsOf(const model::SchemaSpec& schema) {
  int last = schema.label_column;
  for (const int column : schema.categorical) last = std::max(last, column);
  for (const int column : schema.numeric) last = std::max(last, column);
  return static_cast<size_t>(last) + 1;
}

}  // namespace

absl::Status ReadNumber(std::string_view text, int column, float& number) {
  if (text.empty() || text == "?" || text == "NULL" || text == "NA") {
    number = std::numeric_limits<float>::quiet_NaN();
    return absl::OkStatus();
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(number)) {
    return base::InvalidArgument("column {}: '{}' is not a number", column, text);
  }
  return absl::OkStatus();
}

int32_t HashedId(std::string_view value, int field, int64_t embedding_rows) {
  return static_cast<int32_t>(base::Hash64(value, static_cast<uint64_t>(field)) %
                              static_cast<uint64_t>(embedding_rows));
}

RowParser::RowParser(const model::SchemaSpec& schema, char delimiter, int64_t embedding_rows)
    : schema_(schema),
      delimiter_(delimiter),
      embedding_rows_(embedding_rows),
      shape_(ShapeOf(schema)),
      columns_(ColumnsOf(schema)) {}

absl::Status RowParser::ReadLabel(std::string_view text, float& label) const {
  text = LabelText(text);
  if (text.empty()) return base::InvalidArgument("column {}: the label is empty", schema_.label_column);
  if (!schema_.label_positive.empty()) {
    label = text == LabelText(schema_.label_positive) ? 1.0F : 0.0F;
    return absl::OkStatus();
  }
  if (text != "0" && text != "1") {
    return base::InvalidArgument("column {}: the label '{}' is neither 0 nor 1", schema_.label_column, text);
  }
  label = text == "1" ? 1.0F : 0.0F;
  return absl::OkStatus();
}

absl::Status RowParser::Append(std::string_view line, Batch& rows) {
  if (const absl::Status split = SplitCsv(line, delimiter_, fields_); !split.ok()) {
    fields_.values.clear();
    return split;
  }
  if (fields_.values.size() < columns_) {
    return base::InvalidArgument("the line has {} columns, the schema needs {}", fields_.values.size(), columns_);
  }
  const auto value = [&](int column) { return fields_.values[static_cast<size_t>(column)]; };
  float label = 0;
  if (schema_.label_column >= 0) MEDLEY_RETURN_IF_ERROR(ReadLabel(value(schema_.label_column), label));
  numbers_.clear();
  for (const int column : schema_.numeric) {
    MEDLEY_RETURN_IF_ERROR(ReadNumber(value(column), column, numbers_.emplace_back()));
  }
  for (size_t field = 0; field < schema_.categorical.size(); ++field) {
    rows.ids.push_back(HashedId(value(schema_.categorical[field]), static_cast<int>(field), embedding_rows_));
  }
  rows.ids.resize(rows.ids.size() + static_cast<size_t>(shape_.fields) - schema_.categorical.size());
  rows.numerics.insert(rows.numerics.end(), numbers_.begin(), numbers_.end());
  rows.labels.push_back(label);
  ++rows.samples;
  return absl::OkStatus();
}

}  // namespace medley::worker
