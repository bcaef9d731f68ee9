#include "cli/data/label_guess.h"

#include <absl/strings/str_join.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "common/base/closest.h"
#include "common/base/status.h"
#include "worker/data/label_values.h"
#include "worker/data/number.h"

namespace medley::cli {
namespace {

constexpr size_t kMostNamed = 6;
constexpr size_t kMostClasses = 50;           // texts that `medley init` takes for classes
constexpr size_t kMostNumbersAsClasses = 10;  // such as stars

std::string Lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

template <size_t N>
bool IsOneOf(const std::string& text, const std::array<const char*, N>& words) {
  return std::ranges::any_of(words, [&](const char* word) { return Lower(text) == word; });
}

constexpr std::array kLabelNames = {"label",    "target",   "class",     "y",          "outcome", "clicked", "click",
                                    "bought",   "survived", "converted", "churned",    "churn",   "default", "fraud",
                                    "is_fraud", "response", "result",    "conversion", "labels"};
constexpr std::array kPositives = {"1", "yes", "true", "y", "t", "positive", "pos", "on", ">50k"};

// The values as the job compares them, without a trailing dot.
std::map<std::string, int64_t> LabelsOf(const ColumnGuess& column) {
  std::map<std::string, int64_t> labels;
  for (const auto& [value, rows] : column.values) labels[std::string(worker::LabelText(value))] += rows;
  return labels;
}

bool HasTwoValues(const ColumnGuess& column) { return !column.many_values && LabelsOf(column).size() == 2; }

std::string Candidates(const TableGuess& table) {
  std::vector<std::string> names;
  for (const ColumnGuess& column : table.columns) {
    if (HasTwoValues(column) && names.size() < kMostNamed) names.push_back(ColumnText(column));
  }
  return names.empty() ? "no column has two values" : "columns with two values: " + absl::StrJoin(names, ", ");
}

absl::StatusOr<size_t> Find(const std::string& path, const TableGuess& table, const std::string& wanted) {
  std::vector<std::string> names;
  for (size_t c = 0; c < table.columns.size(); ++c) {
    if (table.columns[c].named && table.columns[c].name == wanted) return c;
    if (table.columns[c].named) names.push_back(table.columns[c].name);
  }
  size_t number = 0;
  const auto [end, error] = std::from_chars(wanted.data(), wanted.data() + wanted.size(), number);
  if (error == std::errc() && end == wanted.data() + wanted.size() && number < table.columns.size()) return number;
  return base::NotFound(
      "{}: there is no column '{}'{}", path, wanted,
      names.empty() ? fmt::format("; the file has no header, and columns from 0 to {}", table.columns.size() - 1)
                    : base::DidYouMean(wanted, names));
}

// The one column that a user would mean.
absl::StatusOr<std::pair<size_t, std::string>> Choose(const std::string& path, const TableGuess& table) {
  std::vector<size_t> by_name;
  for (size_t c = 0; c < table.columns.size(); ++c) {
    if (table.columns[c].named && IsOneOf(table.columns[c].name, kLabelNames)) by_name.push_back(c);
  }
  if (by_name.size() == 1) {
    return std::pair(by_name[0], fmt::format("its name is {}", ColumnText(table.columns[by_name[0]])));
  }
  if (by_name.empty()) {
    if (HasTwoValues(table.columns.back())) {
      return std::pair(table.columns.size() - 1, std::string("it is the last column and has two values"));
    }
    std::vector<size_t> two;
    for (size_t c = 0; c < table.columns.size(); ++c) {
      if (HasTwoValues(table.columns[c])) two.push_back(c);
    }
    if (two.size() == 1) return std::pair(two[0], std::string("it is the only column with two values"));
  }
  return base::InvalidArgument("{}: the label cannot be guessed ({}): name its column with --label", path,
                               Candidates(table));
}

// The value that counts as 1: a word such as yes, or the rarer one.
LabelGuess TwoValues(const std::map<std::string, int64_t>& labels) {
  auto positive = labels.begin();
  auto negative = std::next(positive);
  const bool second_says_so = IsOneOf(negative->first, kPositives);
  if (second_says_so || (!IsOneOf(positive->first, kPositives) && negative->second < positive->second)) {
    std::swap(positive, negative);
  }
  LabelGuess guess;
  guess.positives = positive->second;
  guess.negatives = negative->second;
  if (positive->first == "1" && negative->first == "0") return guess;
  guess.positive = positive->first;
  guess.negative = negative->first;
  return guess;
}

bool HasNumbers(const TableGuess& table, const ColumnGuess& column) {
  return std::ranges::all_of(table.rows, [&](const Row& row) {
    float number = 0;
    return worker::ReadNumber(row[static_cast<size_t>(column.number)], column.number, number).ok();
  });
}

// What the values of the column let a model predict.
absl::StatusOr<LabelGuess> LabelFrom(const std::string& path, const TableGuess& table, const ColumnGuess& column) {
  const std::map<std::string, int64_t> labels = LabelsOf(column);
  if (!column.many_values && labels.size() == 2) {
    LabelGuess guess = TwoValues(labels);
    guess.missing = column.missing;
    if (guess.positive.empty()) return guess;
    // With text labels every text but the positive one is 0, so that only an empty field is a missing label.
    for (const Row& row : table.rows) {
      const std::string& text = row[static_cast<size_t>(column.number)];
      if (text.empty() || column.values.contains(text)) continue;
      return base::InvalidArgument(
          "{}: the label in column {} is {} in some rows, which would count as {}: remove them", path,
          ColumnText(column), text, guess.negative);
    }
    return guess;
  }
  const bool numbers = HasNumbers(table, column);
  const int64_t labelled = std::ssize(table.rows) - column.missing;
  const size_t most = numbers ? kMostNumbersAsClasses : kMostClasses;
  LabelGuess guess;
  guess.missing = column.missing;
  if (!column.many_values && labels.size() > 2 && labels.size() <= most && 2 * std::ssize(labels) <= labelled) {
    guess.task = model::Task::kMultiClass;
    guess.classes = labels;
    return guess;
  }
  if (numbers && labels.size() > 2) {
    guess.task = model::Task::kRegression;
    return guess;
  }
  std::vector<std::string> some;
  for (const auto& [value, rows] : labels) {
    if (some.size() < kMostNamed) some.push_back(fmt::format("\"{}\"", value));
  }
  const std::string count =
      column.many_values ? fmt::format("more than {}", labels.size()) : std::to_string(labels.size());
  return base::InvalidArgument(
      "{}: the label in column {} has {} different values{}{}: a model needs two values, such as 0 and 1, numbers, or "
      "classes that occur in several rows",
      path, ColumnText(column), count, some.empty() ? "" : ", as ", absl::StrJoin(some, ", "));
}

}  // namespace

absl::StatusOr<LabelGuess> GuessLabel(const std::string& path, const TableGuess& table, const std::string& wanted) {
  if (table.columns.size() < 2) {
    return base::InvalidArgument(
        "{}: the file has one column; a model needs a label and at least one other column, between commas or tabs",
        path);
  }
  std::pair<size_t, std::string> chosen;
  if (wanted.empty()) {
    MEDLEY_ASSIGN_OR_RETURN(chosen, Choose(path, table));
  } else {
    MEDLEY_ASSIGN_OR_RETURN(chosen.first, Find(path, table, wanted));
    chosen.second = "--label says so";
  }
  MEDLEY_ASSIGN_OR_RETURN(LabelGuess guess, LabelFrom(path, table, table.columns[chosen.first]));
  guess.column = chosen.first;
  guess.why = chosen.second;
  return guess;
}

absl::Status CheckFeatures(const std::string& path, const TableGuess& table, const LabelGuess& label) {
  for (size_t c = 0; c < table.columns.size(); ++c) {
    const ColumnType type = table.columns[c].type;
    if (c != label.column && (type == ColumnType::kNumeric || type == ColumnType::kCategorical)) {
      return absl::OkStatus();
    }
  }
  return base::InvalidArgument(
      "{}: no column beside the label {} can be learnt from: each is the same or different in every row", path,
      ColumnText(table.columns[label.column]));
}

}  // namespace medley::cli
