// Columns beside the label: what tells it, what weighs rows, and whether anything is left to learn from.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "cli/data/label_guess.h"
#include "cli/data/label_words.h"
#include "cli/format.h"
#include "common/base/status.h"
#include "common/base/utf8.h"

namespace medley::cli {
namespace {

// Whether each value of a column occurs with one label only, and several of them in many rows.
bool Determines(const TableGuess& table, size_t column, size_t label) {
  std::map<std::string_view, std::string_view> labels;
  std::set<std::string_view> seen;
  for (const Row& row : table.rows) {
    if (row[column].empty() || row[label].empty()) continue;
    if (labels.try_emplace(row[column], row[label]).first->second != row[label]) return false;
    seen.insert(row[label]);
  }
  return seen.size() > 1 && labels.size() * 10 <= table.rows.size();
}

// Whether numbers below a limit have one label and numbers above it another.
bool Separates(const TableGuess& table, size_t column, size_t label) {
  std::map<std::string_view, std::pair<double, double>> ranges;
  for (const Row& row : table.rows) {
    const worker::Value value = NumberOf(row[column]);
    if (value.kind != worker::ValueKind::kNumber || row[label].empty()) continue;
    const auto [range, first] = ranges.try_emplace(row[label], value.number, value.number);
    range->second.first = std::min(range->second.first, value.number);
    range->second.second = std::max(range->second.second, value.number);
  }
  if (ranges.size() != 2) return false;
  const auto& a = ranges.begin()->second;
  const auto& b = std::next(ranges.begin())->second;
  return a.second < b.first || b.second < a.first;
}

// Whether two columns of numbers are proportional to each other, but for a constant.
bool Follows(const TableGuess& table, size_t column, size_t label) {
  double n = 0, x = 0, y = 0, xx = 0, yy = 0, xy = 0;
  for (const Row& row : table.rows) {
    const worker::Value a = NumberOf(row[column]), b = NumberOf(row[label]);
    if (a.kind != worker::ValueKind::kNumber || b.kind != worker::ValueKind::kNumber) continue;
    const double dx = (a.number - x) / (n + 1), dy = (b.number - y) / (n + 1);
    xx += n * (n + 1) * dx * dx;
    yy += n * (n + 1) * dy * dy;
    xy += n * (n + 1) * dx * dy;
    x += dx;
    y += dy;
    ++n;
  }
  return n > 2 && xx > 0 && yy > 0 && xy * xy > 0.99999 * xx * yy;
}

}  // namespace

std::vector<std::string> FindLeaks(const TableGuess& table, const LabelGuess& label) {
  constexpr size_t kFewestRows = 20;  // in fewer rows anything may tell the label by chance
  std::vector<std::string> leaks;
  for (size_t c = 0; c < table.columns.size(); ++c) {
    const ColumnGuess& column = table.columns[c];
    if (label.Is(c) || column.type == ColumnType::kIdentifier || column.type == ColumnType::kConstant) continue;
    bool tells = false;
    if (table.rows.size() >= kFewestRows && label.columns.empty()) {
      tells = label.task == model::Task::kRegression
                  ? Follows(table, c, label.column)
                  : Determines(table, c, label.column) ||
                        (column.type == ColumnType::kNumeric && Separates(table, c, label.column));
    }
    if (tells) {
      leaks.push_back(
          fmt::format("{} alone tells the label of every row: remove it from the job if it is not known "
                      "before the label is",
                      ColumnText(column)));
    } else if (column.named && IsLabelName(column.name)) {
      leaks.push_back(
          fmt::format("the name of {} is that of a label: remove it from the job if it is not known when the "
                      "model predicts",
                      ColumnText(column)));
    }
  }
  return leaks;
}

absl::Status UseWeight(const std::string& path, const TableGuess& table, const std::string& wanted, LabelGuess& label) {
  MEDLEY_ASSIGN_OR_RETURN(const size_t column, FindColumn(path, table, wanted));
  const std::string name = ColumnText(table.columns[column]);
  if (label.Predicts(column)) {
    return base::InvalidArgument("{}: column {} cannot be both the label and the weight", path, name);
  }
  bool positive = false;
  label.unweighted = 0;
  for (const Row& row : table.rows) {
    const worker::Value value = NumberOf(row[column]);
    if (value.kind == worker::ValueKind::kMissing) {
      ++label.unweighted;
    } else if (value.kind != worker::ValueKind::kNumber || value.number < 0) {
      return base::InvalidArgument("{}: the weight in column {} is '{}' in some rows; weights are numbers from 0 on",
                                   path, name, base::Printable(row[column], 60));
    }
    positive = positive || (value.kind == worker::ValueKind::kNumber && value.number > 0);
  }
  if (!positive) return base::InvalidArgument("{}: the weight in column {} is 0 in every row", path, name);
  label.weight = column;
  return absl::OkStatus();
}

std::vector<std::string> FindWeights(const TableGuess& table, const LabelGuess& label) {
  std::vector<std::string> found;
  for (size_t c = 0; c < table.columns.size(); ++c) {
    const ColumnGuess& column = table.columns[c];
    if (label.Is(c) || column.type != ColumnType::kNumeric || !column.named || !IsWeightName(column.name)) {
      continue;
    }
    found.push_back(
        fmt::format("the name of {0} is that of weights of rows, but it is taken as a feature: with --weight "
                    "{0} rows count so",
                    ColumnText(column)));
  }
  return found;
}

absl::Status CheckFeatures(const std::string& path, const TableGuess& table, const LabelGuess& label) {
  size_t numeric = 0, categorical = 0;
  for (size_t c = 0; c < table.columns.size(); ++c) {
    if (label.Is(c)) continue;
    const ColumnType type = table.columns[c].type;
    if (type == ColumnType::kNumeric) ++numeric;
    if (type == ColumnType::kDate) numeric += std::size(model::kDateParts);
    if (type == ColumnType::kCategorical) ++categorical;
  }
  if (std::max(numeric, categorical) > model::kMostColumns) {
    return base::InvalidArgument(
        "{}: {} columns of numbers and {} of categories would be learnt from, and a job has at most {} of each: remove "
        "columns, or write the job for some of them",
        path, numeric, categorical, model::kMostColumns);
  }
  if (numeric + categorical > 0) return absl::OkStatus();
  return base::InvalidArgument(
      "{}: no column beside the label {} can be learnt from: each is the same or different in every row", path,
      ColumnText(table.columns[label.column]));
}

}  // namespace medley::cli
