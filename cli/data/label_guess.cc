#include "cli/data/label_guess.h"

#include <absl/strings/str_join.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

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
constexpr std::array kPositives = {"1",   "yes", "true",      "y",   "t",  "positive", "pos",  "on",   ">50k",     "ja",
                                   "oui", "si",  "s\xc3\xad", "sim", "da", "tak",      "wahr", "vrai", "verdadero"};
constexpr std::array kNegatives = {"0",     "no",   "false", "n",   "f",          "negative", "neg",  "off",
                                   "<=50k", "nein", "non",   "nee", "n\xc3\xa3o", "falsch",   "faux", "falso"};
constexpr std::array kWeightNames = {
    "weights", "sample_weight", "sample_weights", "sampleweight", "row_weight", "case_weight", "wt", "fnlwgt"};

// 1: the text means yes, -1: no, 0: neither.
int MeaningOf(const std::string& text);

int MeaningOf(const std::string& text) { return IsOneOf(text, kPositives) ? 1 : IsOneOf(text, kNegatives) ? -1 : 0; }

worker::Value NumberOf(const std::string& text) {
  static const worker::ValueReader kReader;
  return kReader.Read(text);
}

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

// Numbers such as prices, incomes and durations, whose logarithm lies more evenly than they do.
bool AreLikePrices(const Labels& labels) {
  constexpr double kSkewed = 2, kEven = 1;
  constexpr size_t kFewest = 20;
  if (labels.rows.size() < kFewest) return false;
  if (!std::ranges::all_of(labels.rows, [](const auto& label) { return NumberOf(label.first).number > 0; }))
    return false;
  return SkewOf(labels.rows, false) > kSkewed && std::abs(SkewOf(labels.rows, true)) < kEven;
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
           return !IsOneOf(label.first, kPositives) && rows * 4 >= label.second;
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
    if (letters == name.size() || !IsOneOf(begin, kBegins)) continue;
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
    const absl::StatusOr<size_t> one = Find(path, table, wanted);
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
    MEDLEY_ASSIGN_OR_RETURN(chosen.first, Find(path, table, wanted));
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
        Find(path, table, std::string(worker::Trim(std::string_view(list).substr(begin, end - begin)))));
    if (std::ranges::find(columns, column) == columns.end()) columns.push_back(column);
    begin = end + 1;
  }
  return columns;
}

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
    } else if (column.named && IsOneOf(column.name, kLabelNames)) {
      leaks.push_back(
          fmt::format("the name of {} is that of a label: remove it from the job if it is not known when the "
                      "model predicts",
                      ColumnText(column)));
    }
  }
  return leaks;
}

absl::Status UseWeight(const std::string& path, const TableGuess& table, const std::string& wanted, LabelGuess& label) {
  MEDLEY_ASSIGN_OR_RETURN(const size_t column, Find(path, table, wanted));
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
    if (label.Is(c) || column.type != ColumnType::kNumeric || !column.named || !IsOneOf(column.name, kWeightNames)) {
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
  for (size_t c = 0; c < table.columns.size(); ++c) {
    const ColumnType type = table.columns[c].type;
    if (!label.Is(c) &&
        (type == ColumnType::kNumeric || type == ColumnType::kCategorical || type == ColumnType::kDate)) {
      return absl::OkStatus();
    }
  }
  return base::InvalidArgument(
      "{}: no column beside the label {} can be learnt from: each is the same or different in every row", path,
      ColumnText(table.columns[label.column]));
}

}  // namespace medley::cli
