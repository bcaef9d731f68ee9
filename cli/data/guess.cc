#include "cli/data/guess.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "worker/data/csv.h"
#include "worker/data/number.h"

namespace medley::cli {
namespace {

constexpr size_t kMostValues = 1000;  // of a column that are counted
constexpr size_t kLongestName = 253;  // of a column in a manifest

bool IsMissing(const std::string& text) { return worker::IsMissingText(text); }

bool IsNumber(const std::string& text) {
  static const worker::ValueReader kReader;
  return kReader.Read(text).kind == worker::ValueKind::kNumber;
}

// Text that a manifest can hold: UTF-8 without control characters.
bool IsWritable(const std::string& text) {
  if (std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; })) return false;
  const std::string once = nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return once.find("\xef\xbf\xbd") == std::string::npos;
}

// Whether nine of ten values below the first row are numbers.
bool IsNumericBelow(const std::vector<Row>& rows, size_t column) {
  int64_t numbers = 0, others = 0;
  for (size_t i = 1; i < rows.size(); ++i) {
    if (IsMissing(rows[i][column])) continue;
    ++(IsNumber(rows[i][column]) ? numbers : others);
  }
  return numbers > 9 * others;
}

bool OccursBelow(const std::vector<Row>& rows, size_t column) {
  return std::any_of(rows.begin() + 1, rows.end(), [&](const Row& row) { return row[column] == rows[0][column]; });
}

bool HasHeader(const std::vector<Row>& rows) {
  const Row& first = rows[0];
  const auto is_name = [](const std::string& field) { return !IsMissing(field) && !IsNumber(field); };
  // Some columns may have no name: the index that a table of pandas or R begins with, what follows a comma at the end
  // of each row, columns that were added by hand.
  const auto names = std::ranges::count_if(first, is_name), empty = std::ranges::count(first, std::string());
  if (names + empty < std::ssize(first) || empty > names) return false;
  if (rows.size() == 1) return true;
  bool repeats = false;
  for (size_t c = 0; c < first.size(); ++c) {
    if (first[c].empty()) continue;  // which a row without a value has too
    if (IsNumericBelow(rows, c)) return true;
    repeats = repeats || OccursBelow(rows, c);
  }
  return !repeats;
}

ColumnGuess GuessColumn(const std::vector<Row>& rows, size_t at) {
  ColumnGuess column;
  column.number = static_cast<int>(at);
  for (const Row& row : rows) {
    const std::string& value = row[at];
    if (IsMissing(value)) {
      continue;
    } else if (const auto found = column.values.find(value); found != column.values.end()) {
      ++found->second;
    } else if (column.values.size() < kMostValues) {
      column.values.emplace(value, 1);
    } else {
      column.many_values = true;
    }
  }
  return column;
}

}  // namespace

TableGuess GuessTable(const Sample& sample, const std::map<size_t, ColumnType>& wanted) {
  TableGuess table;
  const bool named = sample.format != nullptr && sample.format->header == model::HeaderRule::kAlways;
  table.header = named || HasHeader(sample.rows);
  table.rows.assign(sample.rows.begin() + (table.header ? 1 : 0), sample.rows.end());
  for (size_t c = 0; c < sample.columns; ++c) {
    ColumnGuess column = GuessColumn(table.rows, c);
    if (table.header) {
      const Row& names = sample.rows[0];
      column.name = names[c];
      column.named = !column.name.empty() && column.name.size() <= kLongestName && IsWritable(column.name) &&
                     std::ranges::count(names, column.name) == 1;
    }
    const std::string text = ColumnText(column);
    const auto asked = wanted.find(c);
    TypeGuess type = asked == wanted.end() ? GuessType(table.rows, c, text, column.name)
                                           : TypeAs(asked->second, table.rows, c, text);
    column.type = type.type;
    column.missing = type.missing;
    column.unreadable = type.unreadable;
    column.day_first = type.day_first;
    column.missing_texts = std::move(type.texts);
    column.because = std::move(type.because);
    table.columns.push_back(std::move(column));
  }
  return table;
}

std::string ColumnText(const ColumnGuess& column) {
  return column.named ? fmt::format("'{}'", column.name) : std::to_string(column.number);
}

}  // namespace medley::cli
