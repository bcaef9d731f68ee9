#include "cli/data/guess.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "worker/data/csv.h"
#include "worker/data/number.h"

namespace medley::cli {
namespace {

constexpr size_t kMostValues = 1000;       // of a column that are counted
constexpr size_t kLongestName = 253;       // of a column in a manifest
constexpr int64_t kRowsOfIdentifier = 20;  // fewer rows with different values may be chance

bool IsMissing(const std::string& text) {
  float number = 0;
  return worker::ReadNumber(text, 0, number).ok() && std::isnan(number);
}

bool IsNumber(const std::string& text) {
  float number = 0;
  return worker::ReadNumber(text, 0, number).ok() && !std::isnan(number);
}

// Text that a manifest can hold: UTF-8 without control characters.
bool IsWritable(const std::string& text) {
  if (std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; })) return false;
  const std::string once = nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return once.find("\xef\xbf\xbd") == std::string::npos;
}

bool IsNumericBelow(const std::vector<Row>& rows, size_t column) {
  bool any = false;
  for (size_t i = 1; i < rows.size(); ++i) {
    if (IsMissing(rows[i][column])) continue;
    if (!IsNumber(rows[i][column])) return false;
    any = true;
  }
  return any;
}

bool OccursBelow(const std::vector<Row>& rows, size_t column) {
  return std::any_of(rows.begin() + 1, rows.end(), [&](const Row& row) { return row[column] == rows[0][column]; });
}

bool HasHeader(const std::vector<Row>& rows) {
  const Row& first = rows[0];
  const auto is_name = [](const std::string& field) { return !IsMissing(field) && !IsNumber(field); };
  // One empty field is the index that a table of pandas or R begins with.
  for (size_t c = 0; c < first.size(); ++c) {
    if (!is_name(first[c]) && !(c == 0 && first[c].empty())) return false;
  }
  if (rows.size() == 1) return true;
  bool repeats = false;
  for (size_t c = 0; c < first.size(); ++c) {
    if (IsNumericBelow(rows, c)) return true;
    repeats = repeats || OccursBelow(rows, c);
  }
  return !repeats;
}

ColumnType TypeOf(const ColumnGuess& column, const std::vector<Row>& rows) {
  const auto at = static_cast<size_t>(column.number);
  if (column.values.size() <= 1) return ColumnType::kConstant;
  const bool numeric =
      std::ranges::all_of(rows, [&](const Row& row) { return IsMissing(row[at]) || IsNumber(row[at]); });
  // Numbers that count the rows; other numbers that differ are measurements.
  if (numeric) {
    int64_t counted = 0;
    float previous = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      float number = 0;
      if (!worker::ReadNumber(rows[i][at], 0, number).ok() || std::isnan(number)) break;
      if (i > 0 && number != previous + 1) break;
      previous = number;
      ++counted;
    }
    const auto all = static_cast<int64_t>(rows.size());
    return counted == all && all >= kRowsOfIdentifier ? ColumnType::kIdentifier : ColumnType::kNumeric;
  }
  return ColumnType::kCategorical;
}

// True when every row that has a value has another one.
bool AllDiffer(const std::vector<Row>& rows, size_t column, int64_t missing) {
  std::vector<std::string_view> values;
  for (const Row& row : rows) {
    if (!IsMissing(row[column])) values.push_back(row[column]);
  }
  if (std::ssize(values) < kRowsOfIdentifier || missing > std::ssize(values)) return false;
  std::ranges::sort(values);
  return std::ranges::adjacent_find(values) == values.end();
}

ColumnGuess GuessColumn(const std::vector<Row>& rows, size_t at) {
  ColumnGuess column;
  column.number = static_cast<int>(at);
  for (const Row& row : rows) {
    const std::string& value = row[at];
    if (IsMissing(value)) {
      ++column.missing;
    } else if (const auto found = column.values.find(value); found != column.values.end()) {
      ++found->second;
    } else if (column.values.size() < kMostValues) {
      column.values.emplace(value, 1);
    } else {
      column.many_values = true;
    }
  }
  column.type = TypeOf(column, rows);
  if (column.type == ColumnType::kCategorical && AllDiffer(rows, at, column.missing)) {
    column.type = ColumnType::kIdentifier;
  }
  return column;
}

}  // namespace

const char* TypeName(ColumnType type) {
  switch (type) {
    case ColumnType::kNumeric:
      return "numeric";
    case ColumnType::kCategorical:
      return "categorical";
    case ColumnType::kIdentifier:
      return "identifier";
    case ColumnType::kConstant:
      break;
  }
  return "constant";
}

TableGuess GuessTable(const Sample& sample) {
  TableGuess table;
  table.header = HasHeader(sample.rows);
  table.rows.assign(sample.rows.begin() + (table.header ? 1 : 0), sample.rows.end());
  for (size_t c = 0; c < sample.columns; ++c) {
    ColumnGuess column = GuessColumn(table.rows, c);
    if (table.header) {
      const Row& names = sample.rows[0];
      column.name = names[c];
      column.named = !column.name.empty() && column.name.size() <= kLongestName && IsWritable(column.name) &&
                     std::ranges::count(names, column.name) == 1;
    }
    table.columns.push_back(std::move(column));
  }
  return table;
}

std::string ColumnText(const ColumnGuess& column) {
  return column.named ? fmt::format("'{}'", column.name) : std::to_string(column.number);
}

}  // namespace medley::cli
