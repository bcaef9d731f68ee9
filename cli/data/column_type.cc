#include "cli/data/column_type.h"

#include <absl/strings/str_join.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string_view>

#include "cli/data/number_forms.h"
#include "cli/format.h"
#include "common/base/utf8.h"
#include "worker/data/date.h"
#include "worker/data/number.h"

namespace medley::cli {
namespace {

constexpr int64_t kRowsOfIdentifier = 20;   // fewer rows with different values may be chance
constexpr size_t kDistinctNumbers = 20;     // fewer are as good as categories
constexpr size_t kMostTextsAsMissing = 16;  // of a column
constexpr size_t kDigitsOfDouble = 15;      // that a double always holds
constexpr double kStepsOfFloat = 1 << 24;

struct ValueCounts {
  int64_t empty = 0;
  std::map<std::string, int64_t> missing;  // texts of IsMissingText that are not empty
  std::map<std::string, int64_t> texts;
  std::map<std::string, int64_t> numbers;  // as they are written
  int64_t number_rows = 0;
  int64_t text_rows = 0;
};

ValueCounts Count(const std::vector<Row>& rows, size_t column) {
  const worker::ValueReader reader;
  ValueCounts counts;
  for (const Row& row : rows) {
    const std::string& text = row[column];
    switch (reader.Read(text).kind) {
      case worker::ValueKind::kMissing:
        if (text.empty()) ++counts.empty;
        if (!text.empty()) ++counts.missing[text];
        break;
      case worker::ValueKind::kNumber:
        ++counts.number_rows;
        ++counts.numbers[text];
        break;
      case worker::ValueKind::kText:
        ++counts.text_rows;
        ++counts.texts[text];
        break;
    }
  }
  return counts;
}

int64_t RowsOf(const std::map<std::string, int64_t>& texts) {
  int64_t rows = 0;
  for (const auto& [text, count] : texts) rows += count;
  return rows;
}

// "'N/A' (170 rows), 'none' (2 rows)", the most frequent first.
std::string Counts(const std::map<std::string, int64_t>& texts) {
  constexpr size_t kMostNamed = 5;
  std::vector<std::pair<std::string, int64_t>> sorted(texts.begin(), texts.end());
  std::ranges::stable_sort(sorted, std::ranges::greater(), &std::pair<std::string, int64_t>::second);
  std::vector<std::string> parts;
  int64_t more = 0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (i < kMostNamed) {
      parts.push_back(fmt::format("'{}' ({})", base::Printable(sorted[i].first, 40), Counted(sorted[i].second, "row")));
    } else {
      more += sorted[i].second;
    }
  }
  if (more > 0) parts.push_back(fmt::format("others ({})", Counted(more, "row")));
  return absl::StrJoin(parts, ", ");
}

std::string Percent(int64_t part, int64_t whole) {
  const double percent = 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  // Never "100 %" of which some are missing.
  return fmt::format("{:.{}f} %", std::floor(percent * 100) / 100, percent >= 99.5 ? 2 : 0);
}

bool IsWhole(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// The last word of a name, in lower case: "userId" and "USER_ID" end in "id".
std::string LastWord(const std::string& name) {
  const auto lower = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto upper = [](char c) { return c >= 'A' && c <= 'Z'; };
  size_t begin = name.size();
  while (begin > 0 && (lower(name[begin - 1]) || upper(name[begin - 1]))) {
    --begin;
    if (upper(name[begin]) && begin > 0 && lower(name[begin - 1])) break;
  }
  std::string word = name.substr(begin);
  for (char& c : word) c = upper(c) ? static_cast<char>(c - 'A' + 'a') : c;
  return word;
}

bool IsNameOfIdentifier(const std::string& name) {
  static const std::set<std::string> kWords = {"id",       "uid",   "uuid", "guid", "zip", "zipcode",
                                               "postcode", "phone", "isbn", "ean",  "sku"};
  return kWords.contains(LastWord(name));
}

// Whether distinct whole numbers stay distinct when they are standardised and rounded to float32.
bool StayDistinct(const ValueCounts& counts) {
  std::vector<double> numbers;
  const worker::ValueReader reader;
  for (const auto& [text, rows] : counts.numbers) numbers.push_back(reader.Read(text).number);
  std::ranges::sort(numbers);
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  const double first = numbers.front();
  const double range = numbers.back() - first;
  if (range < kStepsOfFloat) return true;
  std::set<float> rounded;
  for (const double number : numbers) rounded.insert(static_cast<float>((number - first) / range * 2 - 1));
  return static_cast<double>(rounded.size()) > 0.99 * static_cast<double>(numbers.size());
}

// Why whole numbers are names; empty when they are numbers.
std::string WhyIdentifiers(const ValueCounts& counts, const std::string& plain_name) {
  size_t longest = 0, shortest = 64;
  bool zeros = false;
  for (const auto& [text, rows] : counts.numbers) {
    if (!IsWhole(text)) return "";
    const size_t digits = text.size() - (text.find_first_of("+-") == 0 ? 1 : 0);
    longest = std::max(longest, digits);
    shortest = std::min(shortest, digits);
    zeros = zeros || (text.size() > 1 && text[0] == '0');
  }
  if (counts.numbers.size() < 2) return "";
  if (longest > kDigitsOfDouble) return fmt::format("are whole numbers of up to {} digits", longest);
  if (zeros && longest == shortest && longest > 2) return "are whole numbers that begin with 0";
  if (!StayDistinct(counts)) return "are whole numbers that are the same as float32";
  if (IsNameOfIdentifier(plain_name)) return "are whole numbers, and its name is that of an identifier";
  return "";
}

// Numbers that count the rows.
bool CountsRows(const std::vector<Row>& rows, size_t column) {
  const worker::ValueReader reader;
  constexpr double kLargestCount = 9e15;  // above, a double does not change when 1 is added
  if (std::ssize(rows) < kRowsOfIdentifier) return false;
  double previous = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const worker::Value value = reader.Read(rows[i][column]);
    if (value.kind != worker::ValueKind::kNumber || std::abs(value.number) > kLargestCount) return false;
    if (i > 0 && value.number != previous + 1) return false;
    previous = value.number;
  }
  return true;
}

// True when every row that has a value has another one.
bool AllDiffer(const ValueCounts& counts, int64_t rows) {
  const int64_t present = counts.number_rows + counts.text_rows;
  return present >= kRowsOfIdentifier && rows - present <= present &&
         std::ssize(counts.numbers) + std::ssize(counts.texts) == present;
}

// Takes the texts that are no numbers as missing: all of them, or the most frequent ones.
void TakeAsMissing(const std::map<std::string, int64_t>& texts, TypeGuess& guess) {
  std::vector<std::pair<std::string, int64_t>> sorted(texts.begin(), texts.end());
  std::ranges::stable_sort(sorted, std::ranges::greater(), &std::pair<std::string, int64_t>::second);
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (i < kMostTextsAsMissing && sorted[i].first.size() <= 253 && base::IsUtf8(sorted[i].first)) {
      guess.texts.push_back(sorted[i].first);
      guess.missing += sorted[i].second;
    } else {
      guess.unreadable += sorted[i].second;
    }
  }
}

// The sentence about values that are not of the type of most. `what`: "numbers".
void SayMissing(const ValueCounts& counts, const std::map<std::string, int64_t>& texts, int64_t rows,
                const std::string& name, const char* what, TypeGuess& guess) {
  std::map<std::string, int64_t> all = texts;
  all.insert(counts.missing.begin(), counts.missing.end());
  if (all.empty()) return;
  const int64_t other = RowsOf(all) + counts.empty;
  const std::string empty = counts.empty > 0 ? fmt::format(", and {} empty", Counted(counts.empty, "row")) : "";
  guess.because.push_back(fmt::format("{} of {} are {}; {}{} {} taken as missing", Percent(rows - other, rows), name,
                                      what, Counts(all), empty, all.size() == 1 && empty.empty() ? "is" : "are"));
  if (guess.unreadable > 0) {
    guess.because.push_back(
        fmt::format("{} of {} cannot be read, and are left out (maxBadRows)", Counted(guess.unreadable, "row"), name));
  }
}

// How many of the texts are dates.
int64_t Dates(const std::map<std::string, int64_t>& texts, bool day_first) {
  int64_t rows = 0;
  for (const auto& [text, count] : texts) rows += worker::ParseDate(text, day_first) ? count : 0;
  return rows;
}

// Whole numbers of eight digits that are all days between 1900 and 2100.
bool AreDays(const ValueCounts& counts) {
  return !counts.numbers.empty() && std::ranges::all_of(counts.numbers, [](const auto& number) {
    const std::string& text = number.first;
    const auto date = text.size() == 8 && IsWhole(text) ? worker::ParseDate(text, false) : std::nullopt;
    return date && date->year >= 1900 && date->year <= 2100;
  });
}

// Dates, when at least nine of ten values are.
std::optional<TypeGuess> AsDates(const ValueCounts& counts, int64_t rows, const std::string& name) {
  constexpr size_t kFewest = 3;
  std::map<std::string, int64_t> texts = counts.texts;
  if (AreDays(counts)) texts.insert(counts.numbers.begin(), counts.numbers.end());
  if (texts.size() < kFewest) return std::nullopt;
  const int64_t month_first = Dates(texts, false), day_first = Dates(texts, true);
  const int64_t present = counts.number_rows + counts.text_rows;
  if (10 * std::max(month_first, day_first) < 9 * present) return std::nullopt;
  TypeGuess guess;
  guess.type = ColumnType::kDate;
  guess.day_first = day_first > month_first;
  guess.missing = counts.empty + RowsOf(counts.missing);
  std::map<std::string, int64_t> others;
  for (const auto& all : {counts.texts, counts.numbers}) {
    for (const auto& [text, count] : all) {
      if (!worker::ParseDate(text, guess.day_first)) others[text] = count;
    }
  }
  TakeAsMissing(others, guess);
  const bool ambiguous = day_first == month_first && std::ranges::any_of(texts, [](const auto& text) {
                           const auto a = worker::ParseDate(text.first, false);
                           const auto b = worker::ParseDate(text.first, true);
                           return a && b && a->seconds != b->seconds;
                         });
  guess.because.push_back(
      fmt::format("{} holds dates or times{}; each becomes five numbers: the time, year, month, weekday and hour", name,
                  ambiguous         ? ", of which the month is taken to come first (dayFirst)"
                  : guess.day_first ? ", day first"
                                    : ""));
  SayMissing(counts, others, rows, name, "dates", guess);
  return guess;
}

// Whether a few texts among numbers are no categories of their own.
bool MostAreNumbers(const ValueCounts& counts) {
  const int64_t present = counts.number_rows + counts.text_rows;
  if (counts.numbers.size() <= kDistinctNumbers) return false;
  if (100 * counts.number_rows >= 99 * present) return true;
  return 10 * counts.number_rows >= 9 * present && counts.texts.size() <= kMostTextsAsMissing;
}

// The unit of most of the texts; empty: they have none.
std::string CommonUnit(const ValueCounts& counts) {
  std::map<std::string, int64_t> units;
  for (const auto& [text, count] : counts.texts) {
    if (const std::string unit = UnitOf(text); !unit.empty()) units[unit] += count;
  }
  for (const auto& [unit, rows] : units) {
    if (2 * rows >= counts.text_rows && rows > 1) return unit;
  }
  return "";
}

// How numbers are written in a column where that is not how this reader, or the user, may expect it.
void SayForms(const ValueCounts& counts, const std::string& name, TypeGuess& guess) {
  const auto grouped = std::ranges::find_if(
      counts.numbers, [](const auto& number) { return number.first.find(',') != std::string::npos; });
  if (guess.type == ColumnType::kNumeric && grouped != counts.numbers.end()) {
    guess.because.push_back(fmt::format("{} has commas between thousands: '{}' is read as {:.15g}", name,
                                        base::Printable(grouped->first, 40),
                                        worker::ValueReader().Read(grouped->first).number));
  }
  int64_t rows = 0;
  std::string example;
  const std::string unit = CommonUnit(counts);
  for (const auto& [text, count] : counts.texts) {
    if (!LooksLikeNumber(text) && !IsHexadecimal(text) && (unit.empty() || UnitOf(text) != unit)) continue;
    rows += count;
    if (example.empty()) example = text;
  }
  if (rows == 0 || 2 * rows < counts.text_rows) return;
  guess.because.push_back(fmt::format(
      "{} of {} are numbers written in another form, as '{}', and are not read as such: write 1234.5, with a "
      "point and without a unit",
      Counted(rows, "row"), name, base::Printable(example, 40)));
}

// Categories that a user may mean as one: 'Rome', 'rome'.
void SayLikeTexts(const ValueCounts& counts, const std::string& name, TypeGuess& guess) {
  std::map<std::string, std::string> first;  // by the text in lower case
  size_t pairs = 0;
  std::string example;
  for (const auto& [text, rows] : counts.texts) {
    std::string lower = text;
    for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    const auto [found, added] = first.emplace(lower, text);
    if (added) continue;
    if (pairs++ == 0) {
      example = fmt::format("'{}' and '{}'", base::Printable(found->second, 40), base::Printable(text, 40));
    }
  }
  if (pairs == 0) return;
  guess.because.push_back(fmt::format("{} of {} differ only in capital letters{}: each is a category of its own",
                                      example, name,
                                      pairs == 1 ? "" : fmt::format(", and {} more such pairs", pairs - 1)));
}

// Nines that stand for a missing value, as -999 does: they occur often, and lie far outside of all other numbers.
void SayNines(const ValueCounts& counts, const std::string& name, TypeGuess& guess) {
  constexpr double kFar = 3;  // times the range of the others
  const worker::ValueReader reader;
  for (const auto& [text, rows] : counts.numbers) {
    const std::string_view digits = std::string_view(text).substr(text.starts_with('-') ? 1 : 0);
    const std::string_view whole = digits.substr(0, digits.find('.'));
    const bool nines = whole.size() >= 2 && whole.find_first_not_of('9') == std::string_view::npos &&
                       digits.substr(whole.size()).find_first_not_of(".0") == std::string_view::npos;
    if (!nines || rows < 3 || 200 * rows < counts.number_rows) continue;
    double least = HUGE_VAL, most = -HUGE_VAL;
    for (const auto& [other, times] : counts.numbers) {
      if (other == text) continue;
      const double number = reader.Read(other).number;
      least = std::min(least, number);
      most = std::max(most, number);
    }
    const double value = reader.Read(text).number, far = kFar * (most - least);
    if (!(value < least - far || value > most + far)) continue;
    guess.because.push_back(
        fmt::format("'{}' ({}) of {} lies far outside of all other values: if it means a missing value, list it in "
                    "schema.missing",
                    base::Printable(text, 40), Counted(rows, "row"), name));
  }
}

TypeGuess AsNumbers(const ValueCounts& counts, int64_t rows, const std::string& name) {
  TypeGuess guess;
  guess.type = ColumnType::kNumeric;
  guess.missing = counts.empty + RowsOf(counts.missing);
  TakeAsMissing(counts.texts, guess);
  SayMissing(counts, counts.texts, rows, name, "numbers", guess);
  SayForms(counts, name, guess);
  SayNines(counts, name, guess);
  return guess;
}

// Text, or whole numbers that are names.
TypeGuess AsText(const ValueCounts& counts, int64_t rows, const std::string& name, const std::string& why) {
  constexpr size_t kManyCategories = 1000;
  TypeGuess guess;
  guess.missing = counts.empty + RowsOf(counts.missing);
  guess.type = AllDiffer(counts, rows) ? ColumnType::kIdentifier : ColumnType::kCategorical;
  const size_t distinct = counts.numbers.size() + counts.texts.size();
  if (!why.empty()) {
    guess.because.push_back(fmt::format(
        "the values of {} {}: {} (--numeric {} takes them as numbers)", name, why,
        guess.type == ColumnType::kIdentifier ? "they are left out, as each occurs once" : "they are categories",
        name));
  }
  if (guess.type == ColumnType::kCategorical && distinct > kManyCategories) {
    guess.because.push_back(fmt::format("{} has {} different texts in {}: of rare ones a model learns little", name,
                                        Thousands(static_cast<double>(distinct)), Counted(rows, "row")));
  } else if (guess.type == ColumnType::kCategorical && counts.number_rows > 0 && counts.text_rows > 0 && why.empty()) {
    guess.because.push_back(fmt::format("{} of {} are numbers, but others are text, as {}: all are categories",
                                        Percent(counts.number_rows, rows), name, Counts(counts.texts)));
  }
  if (why.empty()) SayForms(counts, name, guess);
  if (guess.type == ColumnType::kCategorical) SayLikeTexts(counts, name, guess);
  return guess;
}

}  // namespace

const char* TypeName(ColumnType type) {
  switch (type) {
    case ColumnType::kNumeric:
      return "numeric";
    case ColumnType::kCategorical:
      return "categorical";
    case ColumnType::kDate:
      return "date";
    case ColumnType::kIdentifier:
      return "identifier";
    case ColumnType::kConstant:
      break;
  }
  return "constant";
}

TypeGuess GuessType(const std::vector<Row>& rows, size_t column, const std::string& name,
                    const std::string& plain_name) {
  const ValueCounts counts = Count(rows, column);
  const auto all = std::ssize(rows);
  if (counts.numbers.size() + counts.texts.size() <= 1) {
    TypeGuess guess;
    guess.type = ColumnType::kConstant;
    guess.missing = counts.empty + RowsOf(counts.missing);
    return guess;
  }
  if (auto dates = AsDates(counts, all, name)) return *std::move(dates);
  if (counts.texts.empty() || MostAreNumbers(counts)) {
    if (counts.texts.empty() && CountsRows(rows, column)) return {.type = ColumnType::kIdentifier};
    const std::string why = WhyIdentifiers(counts, plain_name);
    return why.empty() ? AsNumbers(counts, all, name) : AsText(counts, all, name, why);
  }
  return AsText(counts, all, name, "");
}

TypeGuess TypeAs(ColumnType wanted, const std::vector<Row>& rows, size_t column, const std::string& name) {
  const ValueCounts counts = Count(rows, column);
  if (wanted == ColumnType::kNumeric) return AsNumbers(counts, std::ssize(rows), name);
  TypeGuess guess;
  guess.type = ColumnType::kCategorical;
  guess.missing = counts.empty + RowsOf(counts.missing);
  return guess;
}

}  // namespace medley::cli
