#include "worker/data/column_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "worker/columns/column_value.h"
#include "worker/data/schema.h"

namespace medley::worker {
namespace {

constexpr size_t kNotRead = static_cast<size_t>(-1);

std::vector<size_t> PlacesOf(const std::vector<int>& columns) {
  std::vector<size_t> places;
  for (size_t i = 0; i < columns.size(); ++i) {
    places.resize(static_cast<size_t>(columns[i]) + 1, kNotRead);
    places.back() = i;
  }
  return places;
}

std::vector<int> LabelColumns(const model::SchemaSpec& schema) {
  std::vector<int> columns = schema.label_columns;
  if (columns.empty() && schema.label_column >= 0) columns.push_back(schema.label_column);
  return columns;
}

}  // namespace

std::vector<int> ColumnsRead(const model::SchemaSpec& schema) {
  std::vector<int> columns = LabelColumns(schema);
  columns.insert(columns.end(), schema.categorical.begin(), schema.categorical.end());
  columns.insert(columns.end(), schema.numeric.begin(), schema.numeric.end());
  if (schema.weight_column >= 0) columns.push_back(schema.weight_column);
  std::ranges::sort(columns);
  columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
  return columns;
}

ColumnRows::ColumnRows(const model::SchemaSpec& schema, int64_t embedding_rows, std::vector<std::string> classes)
    : schema_(schema),
      embedding_rows_(embedding_rows),
      columns_(ColumnsRead(schema)),
      places_(PlacesOf(columns_)),
      label_columns_(LabelColumns(schema)),
      values_(schema.missing),
      parser_(schema, ',', embedding_rows, std::move(classes)),
      texts_(columns_.size()) {
  parser_.fields().values.assign(places_.size(), {});
}

const ColumnValues& ColumnRows::Of(const ColumnBatch& batch, int column) const {
  return batch.columns[places_[static_cast<size_t>(column)]];
}

void ColumnRows::FillField(const ColumnBatch& batch, int column, int64_t row) {
  std::string& text = texts_[places_[static_cast<size_t>(column)]];
  text.clear();
  AppendValue(Of(batch, column), row, text);
  parser_.fields().values[static_cast<size_t>(column)] = text;
}

bool ColumnRows::ReadNumbers(const ColumnValues& values, int64_t begin, int64_t end, double* to, size_t stride) const {
  for (int64_t row = begin; row < end; ++row, to += stride) {
    const auto at = static_cast<size_t>(row);
    Value value{ValueKind::kNumber, 0};
    if (values.kind == ColumnKind::kReal) {
      value = values_.Of(values.reals[at]);
    } else if (values.kind == ColumnKind::kText) {
      std::string_view text;
      if (values.codes == nullptr) {
        text = values.texts[at];
      } else if (values.codes[at] >= 0) {
        text = values.texts[static_cast<size_t>(values.codes[at])];
      }
      value = values_.Read(text);
    } else {
      const bool missing = values.present != nullptr && values.present[at] == 0;
      value = values_.Of(missing ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(values.wholes[at]));
    }
    if (value.kind == ValueKind::kText) return false;
    *to = value.number;
  }
  return true;
}

bool ColumnRows::ReadIds(const ColumnValues& values, int64_t begin, int64_t end, size_t field, int32_t* to,
                         size_t stride) {
  const auto hash = [&](std::string_view text) { return HashedId(text, static_cast<int>(field), embedding_rows_); };
  if (field < schema_.whole_numbers.size() && schema_.whole_numbers[field]) {
    if (values.kind != ColumnKind::kWhole || values.present != nullptr) return false;
    for (int64_t row = begin; row < end; ++row, to += stride) {
      const int64_t id = values.wholes[static_cast<size_t>(row)];
      if (id < 0 || id > std::numeric_limits<int32_t>::max()) return false;
      *to = static_cast<int32_t>(id);
    }
    return true;
  }
  if (values.kind != ColumnKind::kText) {
    std::string text;
    for (int64_t row = begin; row < end; ++row, to += stride) {
      text.clear();
      AppendValue(values, row, text);
      *to = hash(text);
    }
    return true;
  }
  if (values.codes == nullptr) {
    for (int64_t row = begin; row < end; ++row, to += stride) *to = hash(values.texts[static_cast<size_t>(row)]);
    return true;
  }
  // Each text is hashed once, unless there are many more texts than rows.
  const bool once = values.different <= 4 * (end - begin);
  if (once) ids_.assign(static_cast<size_t>(values.different), -1);
  for (int64_t row = begin; row < end; ++row, to += stride) {
    const int32_t code = values.codes[static_cast<size_t>(row)];
    if (code < 0) {
      *to = hash("");
      continue;
    }
    const auto at = static_cast<size_t>(code);
    if (!once) {
      *to = hash(values.texts[at]);
      continue;
    }
    if (ids_[at] < 0) ids_[at] = hash(values.texts[at]);
    *to = ids_[at];
  }
  return true;
}

bool ColumnRows::ReadLabels(const ColumnBatch& batch, int64_t row, std::vector<double>& labels) {
  for (const int column : label_columns_) FillField(batch, column, row);
  return parser_.labels().Append(parser_.fields(), labels).ok();
}

bool ColumnRows::AppendColumns(const ColumnBatch& batch, int64_t begin, int64_t end, ParsedRows& rows) {
  for (size_t i = 0; i < schema_.numeric.size(); ++i) {
    if (PartOf(schema_, i) != model::ColumnPart::kValue) return false;
  }
  const auto count = static_cast<size_t>(end - begin);
  const size_t fields = static_cast<size_t>(ShapeOf(schema_).fields), numbers = schema_.numeric.size();
  const size_t first_number = rows.numerics.size(), first_id = rows.ids.size(), first_weight = rows.weights.size();
  const size_t first_label = rows.labels.size();
  const auto undo = [&] {
    rows.numerics.resize(first_number);
    rows.ids.resize(first_id);
    rows.weights.resize(first_weight);
    rows.labels.resize(first_label);
    return false;
  };
  rows.numerics.resize(first_number + count * numbers);
  for (size_t i = 0; i < numbers; ++i) {
    double* const to = rows.numerics.data() + first_number + i;
    if (!ReadNumbers(Of(batch, schema_.numeric[i]), begin, end, to, numbers)) return undo();
  }
  rows.ids.resize(first_id + count * fields);
  for (size_t field = 0; field < schema_.categorical.size(); ++field) {
    int32_t* const to = rows.ids.data() + first_id + field;
    if (!ReadIds(Of(batch, schema_.categorical[field]), begin, end, field, to, fields)) return undo();
  }
  if (schema_.weight_column >= 0) {
    rows.weights.resize(first_weight + count);
    double* const weights = rows.weights.data() + first_weight;
    if (!ReadNumbers(Of(batch, schema_.weight_column), begin, end, weights, 1)) return undo();
    if (!std::all_of(weights, weights + count, IsWeight)) return undo();
  }
  // Last, because labels that occur become classes.
  for (int64_t row = begin; row < end; ++row) {
    if (!ReadLabels(batch, row, rows.labels)) return undo();
  }
  rows.samples += static_cast<int>(count);
  return true;
}

void ColumnRows::Append(const ColumnBatch& batch, int64_t begin, int64_t end, ParsedRows& rows, const Bad& bad) {
  if (AppendColumns(batch, begin, end, rows)) return;
  for (int64_t row = begin; row < end; ++row) {
    for (const int column : columns_) FillField(batch, column, row);
    if (const absl::Status status = parser_.AppendFields(rows); !status.ok()) bad(row, status);
  }
}

}  // namespace medley::worker
