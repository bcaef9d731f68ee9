#include "worker/data/row_parser.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "common/base/hash.h"
#include "common/base/status.h"
#include "common/base/utf8.h"
#include "worker/data/libsvm.h"
#include "worker/data/schema.h"

namespace medley::worker {
namespace {

constexpr double kMostWeight = 1e15;

absl::Status ReadId(std::string_view text, int column, int32_t& id) {
  const std::string_view digits = Trim(text);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), id);
  if (error == std::errc() && end == digits.data() + digits.size() && id >= 0) return absl::OkStatus();
  return base::InvalidArgument("column {}: '{}' is no whole number from 0 to 2^31 - 1", column, base::Printable(text));
}

absl::Status ReadWeight(const ValueReader& values, std::string_view text, int column, double& weight) {
  MEDLEY_RETURN_IF_ERROR(values.ReadNumber(text, column, weight));
  if (std::isnan(weight)) return base::InvalidArgument("column {}: the weight is missing", column);
  if (IsWeight(weight)) return absl::OkStatus();
  return base::InvalidArgument("column {}: the weight '{}' is not between 0 and {:g}", column, base::Printable(text),
                               kMostWeight);
}

}  // namespace

bool IsWeight(double weight) { return weight >= 0 && weight <= kMostWeight; }

size_t ColumnsOf(const model::SchemaSpec& schema) {
  int last = std::max(schema.label_column, schema.weight_column);
  for (const int column : schema.label_columns) last = std::max(last, column);
  for (const int column : schema.categorical) last = std::max(last, column);
  for (const int column : schema.numeric) last = std::max(last, column);
  return static_cast<size_t>(last) + 1;
}

int32_t HashedId(std::string_view value, int field, int64_t embedding_rows) {
  return static_cast<int32_t>(base::Hash64(value, static_cast<uint64_t>(field)) %
                              static_cast<uint64_t>(embedding_rows));
}

RowParser::RowParser(const model::SchemaSpec& schema, char delimiter, int64_t embedding_rows,
                     std::vector<std::string> classes, size_t width)
    : schema_(schema),
      delimiter_(delimiter),
      embedding_rows_(embedding_rows),
      shape_(ShapeOf(schema)),
      values_(schema.missing),
      columns_(ColumnsOf(schema)),
      width_(width),
      labels_(schema, std::move(classes)) {}

absl::Status RowParser::ReadDate(std::string_view text, int column, model::ColumnPart part, double& number) {
  // The parts of a date follow each other.
  if (part == model::ColumnPart::kTime) {
    const bool missing = values_.Read(text).kind == ValueKind::kMissing;
    date_ = missing ? std::nullopt : ParseDate(text, schema_.day_first);
    if (!missing && !date_) {
      return base::InvalidArgument("column {}: '{}' is no date or time", column, base::Printable(text));
    }
  }
  number = date_ ? date_->Part(part) : std::numeric_limits<double>::quiet_NaN();
  return absl::OkStatus();
}

absl::Status RowParser::Append(std::string_view record, ParsedRows& rows) {
  if (const absl::Status split = SplitRow(record, delimiter_, std::max(columns_, width_), fields_); !split.ok()) {
    fields_.values.clear();
    return split;
  }
  return AppendFields(rows);
}

absl::Status RowParser::AppendFields(ParsedRows& rows) {
  if (fields_.values.size() < columns_) {
    return base::InvalidArgument("the line has {} columns, the schema needs {}", fields_.values.size(), columns_);
  }
  if (width_ > 0 && fields_.values.size() != width_) {
    return base::InvalidArgument("expected {} columns, found {}", width_, fields_.values.size());
  }
  const size_t ids = rows.ids.size(), numbers = rows.numerics.size(), weights = rows.weights.size();
  absl::Status status = AppendValues(rows);
  if (status.ok()) {
    ++rows.samples;
  } else {
    rows.ids.resize(ids);
    rows.numerics.resize(numbers);
    rows.weights.resize(weights);
  }
  return status;
}

// Labels come last: LabelReader appends nothing on error.
absl::Status RowParser::AppendValues(ParsedRows& rows) {
  const auto value = [&](int column) { return fields_.values[static_cast<size_t>(column)]; };
  const size_t first_number = rows.numerics.size(), first_id = rows.ids.size();
  rows.numerics.resize(first_number + schema_.numeric.size());
  double* const numbers = rows.numerics.data() + first_number;
  for (size_t i = 0; i < schema_.numeric.size(); ++i) {
    const int column = schema_.numeric[i];
    if (const model::ColumnPart part = PartOf(schema_, i); part != model::ColumnPart::kValue) {
      MEDLEY_RETURN_IF_ERROR(ReadDate(value(column), column, part, numbers[i]));
    } else {
      MEDLEY_RETURN_IF_ERROR(values_.ReadNumber(value(column), column, numbers[i]));
    }
  }
  rows.ids.resize(first_id + static_cast<size_t>(shape_.fields));  // those of buckets are 0
  int32_t* const ids = rows.ids.data() + first_id;
  for (size_t field = 0; field < schema_.categorical.size(); ++field) {
    const int column = schema_.categorical[field];
    if (field < schema_.whole_numbers.size() && schema_.whole_numbers[field]) {
      MEDLEY_RETURN_IF_ERROR(ReadId(value(column), column, ids[field]));
    } else {
      ids[field] = HashedId(value(column), static_cast<int>(field), embedding_rows_);
    }
  }
  if (schema_.weight_column >= 0) {
    MEDLEY_RETURN_IF_ERROR(
        ReadWeight(values_, value(schema_.weight_column), schema_.weight_column, rows.weights.emplace_back()));
  }
  return labels_.Append(fields_, rows.labels);
}

}  // namespace medley::worker
