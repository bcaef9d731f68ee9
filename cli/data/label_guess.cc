#include "cli/data/label_guess.h"

#include <absl/strings/str_join.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "cli/data/label_words.h"
#include "cli/format.h"
#include "common/base/closest.h"
#include "common/base/status.h"
#include "common/base/utf8.h"
#include "worker/data/csv.h"
#include "worker/data/label_reader.h"
#include "worker/data/number.h"

namespace medley::cli {
namespace {

constexpr size_t kMostNamed = 6;
constexpr size_t kMostClasses = 50;           // texts that `medley init` takes for classes
constexpr size_t kMostNumbersAsClasses = 10;  // such as stars

bool AreNumbers(const std::map<std::string, int64_t>& texts) {
  return std::ranges::all_of(texts, [](const auto& text) {
    return NumberOf(std::string(worker::LabelText(text.first))).kind == worker::ValueKind::kNumber;
  });
}

// The labels of a column as a job compares them: without a trailing dot, and numbers by their value, so that 1.0 is 1.
struct Labels {
  std::map<std::string, int64_t> rows;   // by value
  std::map<std::string, int64_t> words;  // values such as NA that mean a missing number, in a column of text
  int64_t missing = 0;                   // rows without a label
  bool numbers = false;
};

// Words such as NA are missing labels in a column of numbers. In a column of text they are kept apart.
Labels LabelsOf(const TableGuess& table, size_t column) {
  std::map<std::string, int64_t> texts, words;
  Labels labels;
  for (const Row& row : table.rows) {
    const std::string& text = row[column];
    if (text.empty()) {
      ++labels.missing;
    } else {
      ++(worker::IsMissingText(text) ? words : texts)[text];
    }
  }
  labels.numbers = !texts.empty() && AreNumbers(texts);
  for (const auto& [text, rows] : texts) {
    const std::string label(worker::LabelText(text));
    labels.rows[labels.numbers ? fmt::format("{}", NumberOf(label).number) : label] += rows;
  }
  for (const auto& [word, rows] : words) {
    if (labels.numbers) labels.missing += rows;
  }
  if (!labels.numbers) labels.words = words;
  return labels;
}

bool HasTwoValues(const TableGuess& table, const ColumnGuess& column) {
  return !column.many_values && LabelsOf(table, static_cast<size_t>(column.number)).rows.size() == 2;
}

std::string Candidates(const TableGuess& table) {
  std::vector<std::string> names;
  for (const ColumnGuess& column : table.columns) {
    if (HasTwoValues(table, column) && names.size() < kMostNamed) names.push_back(ColumnText(column));
  }
  return names.empty() ? "no column has two values" : "columns with two values: " + absl::StrJoin(names, ", ");
}

// The one column that a user would mean.
absl::StatusOr<std::pair<size_t, std::string>> Choose(const std::string& path, const TableGuess& table) {
  std::vector<size_t> by_name;
  for (size_t c = 0; c < table.columns.size(); ++c) {
    if (table.columns[c].named && IsLabelName(table.columns[c].name)) by_name.push_back(c);
  }
  if (by_name.size() == 1) {
    return std::pair(by_name[0], fmt::format("its name is {}", ColumnText(table.columns[by_name[0]])));
  }
  if (by_name.empty()) {
    if (HasTwoValues(table, table.columns.back())) {
      return std::pair(table.columns.size() - 1, std::string("it is the last column and has two values"));
    }
    std::vector<size_t> two;
    for (size_t c = 0; c < table.columns.size(); ++c) {
      if (HasTwoValues(table, table.columns[c])) two.push_back(c);
    }
    if (two.size() == 1) return std::pair(two[0], std::string("it is the only column with two values"));
  }
  return base::InvalidArgument("{}: the label cannot be guessed ({}): name its column with --label", path,
                               Candidates(table));
}

// The value that counts as 1: of two numbers the larger one; a word such as yes; or the rarer one.
LabelGuess TwoValues(const Labels& labels) {
  auto positive = labels.rows.begin();
  auto negative = std::next(positive);
  const int first = MeaningOf(positive->first), second = MeaningOf(negative->first);
  const bool swap = labels.numbers    ? NumberOf(negative->first).number > NumberOf(positive->first).number
                    : first != second ? second > first
                                      : negative->second < positive->second;
  if (swap) std::swap(positive, negative);
  LabelGuess guess;
  guess.positives = positive->second;
  guess.negatives = negative->second;
  guess.missing = labels.missing;
  if (positive->first == "1" && negative->first == "0") return guess;
  guess.positive = positive->first;
  guess.negative = negative->first;
  return guess;
}

absl::StatusOr<LabelGuess> BinaryFrom(const std::string& path, const ColumnGuess& column, Labels labels) {
  // A text that is the only one beside words such as NA is one of two classes.
  if (labels.rows.size() == 1 && labels.words.size() == 1) labels.rows.merge(labels.words);
  LabelGuess guess = TwoValues(labels);
  // With text labels every text but the positive one is 0, so that only an empty field is a missing label.
  if (!labels.numbers && !labels.words.empty()) {
    return base::InvalidArgument(
        "{}: the label in column {} is {} in some rows, which would count as {}: remove them, "
        "or make it a class of its own with --task multiClass",
        path, ColumnText(column), labels.words.begin()->first, guess.negative);
  }
  for (const auto& [value, rows] : labels.rows) {
    if (!worker::IsMissingText(value)) continue;
    guess.because.push_back(
        fmt::format("the label '{}' ({}) is a class, not a missing value", value, Counted(rows, "row")));
  }
  return guess;
}

// Labels that a user may mean as one: 'Yes', 'yes'.
void SayLikeClasses(const Labels& labels, LabelGuess& guess) {
  std::map<std::string, std::vector<std::string>> alike;
  for (const auto& [text, rows] : labels.rows)
    alike[Lower(text)].push_back(fmt::format("'{}'", base::Printable(text, 40)));
  for (const auto& [lower, texts] : alike) {
    if (texts.size() < 2) continue;
    guess.because.push_back(
        fmt::format("the labels {} differ only in capital letters, and each is a class of its own: write them alike if "
                    "they mean the same",
                    absl::StrJoin(texts, ", ")));
  }
}

LabelGuess ClassesFrom(Labels labels) {
  LabelGuess guess;
  SayLikeClasses(labels, guess);
  guess.task = model::Task::kMultiClass;
  guess.missing = labels.missing;
  for (const auto& [word, rows] : labels.words) {
    guess.because.push_back(
        fmt::format("the label '{}' ({}) is a class, not a missing value", word, Counted(rows, "row")));
  }
  labels.rows.merge(labels.words);
  guess.classes = std::move(labels.rows);
  return guess;
}

absl::Status NoLabels(const std::string& path, const ColumnGuess& column, const Labels& labels, const char* needs) {
  std::vector<std::string> some;
  for (const auto& [value, rows] : labels.rows) {
    if (some.size() < kMostNamed) some.push_back(fmt::format("\"{}\"", base::Printable(value, 60)));
  }
  const std::string count =
      column.many_values ? fmt::format("more than {}", column.values.size()) : std::to_string(labels.rows.size());
  return base::InvalidArgument(
      "{}: the label in column {} has {}{}{}: {}", path, ColumnText(column),
      labels.rows.size() == 1 && !column.many_values ? "one value" : count + " different values",
      some.empty() ? "" : ", as ", absl::StrJoin(some, ", "), needs);
}

// How far numbers are from lying evenly around their mean: 0 when they do.
double SkewOf(const std::map<std::string, int64_t>& rows, bool log) {
  const auto value = [&](const std::string& text) {
    const double number = NumberOf(text).number;
    return log ? std::log1p(number) : number;
  };
  double count = 0, mean = 0, second = 0, third = 0;
  for (const auto& [text, n] : rows) {
    count += static_cast<double>(n);
    mean += static_cast<double>(n) * (value(text) - mean) / count;
  }
  for (const auto& [text, n] : rows) {
    const double d = value(text) - mean;
    second += static_cast<double>(n) * d * d / count;
    third += static_cast<double>(n) * d * d * d / count;
  }
  return second > 0 ? third / (second * std::sqrt(second)) : 0;
}

// How much further the largest twentieth of the rows is from the middle than the smallest one: 1 when they lie evenly.
// Single rows, such as one wrong price, do not change it.
double TailOf(const std::map<std::string, int64_t>& rows) {
  std::map<double, int64_t> sorted;
  int64_t count = 0;
  for (const auto& [text, n] : rows) {
    sorted[NumberOf(text).number] += n;
    count += n;
  }
  const auto at = [&](double part) {
    auto left = static_cast<int64_t>(part * static_cast<double>(count));
    auto value = sorted.begin();
    for (; std::next(value) != sorted.end() && left >= value->second; ++value) left -= value->second;
    return value->first;
  };
  const double middle = at(0.5), below = middle - at(0.05), above = at(0.95) - middle;
  if (below > 0) return above / below;
  return above > 0 ? std::numeric_limits<double>::infinity() : 1;
}

// Numbers such as prices, incomes and durations, whose logarithm lies more evenly than they do.
bool AreLikePrices(const Labels& labels) {
  constexpr double kSkewed = 2, kEven = 1, kLongTail = 1.5;
  constexpr size_t kFewest = 20;
  if (labels.rows.size() < kFewest) return false;
  if (!std::ranges::all_of(labels.rows, [](const auto& label) { return NumberOf(label.first).number > 0; }))
    return false;
  return SkewOf(labels.rows, false) > kSkewed && std::abs(SkewOf(labels.rows, true)) < kEven &&
         TailOf(labels.rows) > kLongTail;
}

// The label of a task that the user names.
absl::StatusOr<LabelGuess> LabelFor(model::Task task, const std::string& path, const ColumnGuess& column,
                                    const Labels& labels) {
  switch (task) {
    case model::Task::kRegression: {
      if (!labels.numbers) return NoLabels(path, column, labels, "a regression needs numbers");
      LabelGuess guess;
      guess.task = task;
      guess.missing = labels.missing;
      if (AreLikePrices(labels)) {
        guess.log = true;
        guess.because.push_back(
            fmt::format("the numbers of {} are positive, and a few are much larger than most: the model learns their "
                        "logarithm (transform: Log1p); metrics and predictions are the numbers themselves",
                        ColumnText(column)));
      }
      return guess;
    }
    case model::Task::kMultiClass:
      if (column.many_values || labels.rows.size() + labels.words.size() < 2) {
        return NoLabels(path, column, labels, "a multiClass task needs from 2 to 1000");
      }
      return ClassesFrom(labels);
    case model::Task::kBinary:
    case model::Task::kMultiLabel:
    case model::Task::kOwnLoss:
      break;
  }
  const size_t values = labels.rows.size() + (labels.numbers ? 0 : labels.words.size());
  if (column.many_values || (labels.rows.size() != 2 && values != 2)) {
    return NoLabels(path, column, labels, "a binary task needs two");
  }
  return BinaryFrom(path, column, labels);
}

// Whether a word such as NA beside two other texts is a class as they are, such as the continent: it is as frequent,
// and the others are not words for yes and no.
bool IsClassBesideTwo(const Labels& labels) {
  constexpr int64_t kFewestRows = 10;
  if (labels.rows.size() != 2 || labels.words.size() != 1 || labels.numbers) return false;
  const int64_t rows = labels.words.begin()->second;
  return rows >= kFewestRows && std::ranges::all_of(labels.rows, [&](const auto& label) {
           return MeaningOf(label.first) <= 0 && rows * 4 >= label.second;
         });
}

// What the values of the column let a model predict.
absl::StatusOr<LabelGuess> LabelFrom(const std::string& path, const TableGuess& table, const ColumnGuess& column) {
  Labels labels = LabelsOf(table, static_cast<size_t>(column.number));
  if (IsClassBesideTwo(labels)) return ClassesFrom(std::move(labels));
  const bool with_word = labels.rows.size() == 1 && labels.words.size() == 1;
  if (!column.many_values && (labels.rows.size() == 2 || with_word)) return BinaryFrom(path, column, labels);
  const int64_t labelled = std::ssize(table.rows) - labels.missing;
  const size_t most = labels.numbers ? kMostNumbersAsClasses : kMostClasses;
  if (!column.many_values && labels.rows.size() > 2 && labels.rows.size() <= most &&
      2 * std::ssize(labels.rows) <= labelled) {
    return ClassesFrom(std::move(labels));
  }
  if (labels.numbers && labels.rows.size() > 2) return LabelFor(model::Task::kRegression, path, column, labels);
  return NoLabels(path, column, labels,
                  "a model needs two values, such as 0 and 1, numbers, or classes that occur in several rows");
}

// Columns of 0 and 1 whose names begin with the name of a label: label_a, label_b.
std::vector<size_t> SeveralByName(const TableGuess& table) {
  constexpr std::array kBegins = {"label", "labels", "target", "class", "y", "tag", "tags", "outcome"};
  std::map<std::string, std::vector<size_t>> found;
  for (size_t c = 0; c < table.columns.size(); ++c) {
    if (!table.columns[c].named) continue;
    const std::string name = Lower(table.columns[c].name);
    const size_t letters = std::min(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz"), name.size());
    const std::string begin = name.substr(0, letters);
    if (letters == name.size() || std::ranges::none_of(kBegins, [&](const char* word) { return begin == word; }))
      continue;
    const Labels labels = LabelsOf(table, c);
    const bool zero_or_one =
        std::ranges::all_of(labels.rows, [](const auto& value) { return value.first == "0" || value.first == "1"; });
    if (labels.numbers && zero_or_one) found[begin].push_back(c);
  }
  for (auto& [begin, columns] : found) {
    if (columns.size() > 1) return columns;
  }
  return {};
}

absl::StatusOr<LabelGuess> Several(const std::string& path, const TableGuess& table, std::vector<size_t> columns,
                                   std::string why) {
  LabelGuess guess;
  guess.task = model::Task::kMultiLabel;
  for (const size_t column : columns) {
    const Labels labels = LabelsOf(table, column);
    for (const auto& [value, rows] : labels.rows) {
      if (labels.numbers && (value == "0" || value == "1")) continue;
      return base::InvalidArgument("{}: the label in column {} is \"{}\" in some rows; several labels hold 0 and 1",
                                   path, ColumnText(table.columns[column]), base::Printable(value, 60));
    }
    guess.missing = std::max(guess.missing, labels.missing);
  }
  guess.column = columns.front();
  guess.columns = std::move(columns);
  guess.why = std::move(why);
  return guess;
}

}  // namespace

absl::StatusOr<LabelGuess> GuessLabel(const std::string& path, const TableGuess& table, const std::string& wanted,
                                      std::optional<model::Task> task) {
  if (table.columns.size() < 2) {
    return base::InvalidArgument(
        "{}: the file has one column; a model needs a label and at least one other column, between commas or tabs",
        path);
  }
  if (wanted.empty()) {
    std::vector<size_t> several = SeveralByName(table);
    const bool may = !task || *task == model::Task::kMultiLabel;
    if (may && !several.empty()) return Several(path, table, std::move(several), "their names are those of labels");
  }
  if (!wanted.empty()) {
    const absl::StatusOr<size_t> one = FindColumn(path, table, wanted);
    if (!one.ok() && wanted.find(',') == std::string::npos) return one.status();
    if (!one.ok() || task == model::Task::kMultiLabel) {
      MEDLEY_ASSIGN_OR_RETURN(std::vector<size_t> columns, FindListed(path, table, wanted));
      return Several(path, table, std::move(columns), "--label says so");
    }
  } else if (task == model::Task::kMultiLabel) {
    return base::InvalidArgument("{}: name the columns of a multiLabel task: --label a,b,c", path);
  }
  std::pair<size_t, std::string> chosen;
  if (wanted.empty()) {
    MEDLEY_ASSIGN_OR_RETURN(chosen, Choose(path, table));
  } else {
    MEDLEY_ASSIGN_OR_RETURN(chosen.first, FindColumn(path, table, wanted));
    chosen.second = "--label says so";
  }
  const ColumnGuess& column = table.columns[chosen.first];
  MEDLEY_ASSIGN_OR_RETURN(LabelGuess guess, task ? LabelFor(*task, path, column, LabelsOf(table, chosen.first))
                                                 : LabelFrom(path, table, column));
  guess.column = chosen.first;
  guess.why = chosen.second;
  return guess;
}

absl::StatusOr<std::vector<size_t>> FindListed(const std::string& path, const TableGuess& table,
                                               const std::string& list) {
  std::vector<size_t> columns;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    MEDLEY_ASSIGN_OR_RETURN(
        const size_t column,
        FindColumn(path, table, std::string(worker::Trim(std::string_view(list).substr(begin, end - begin)))));
    if (std::ranges::find(columns, column) == columns.end()) columns.push_back(column);
    begin = end + 1;
  }
  return columns;
}

}  // namespace medley::cli
