#include "worker/data/date.h"

#include <algorithm>
#include <array>
#include <chrono>

namespace medley::worker {
namespace {

constexpr std::array<std::string_view, 12> kMonths = {"jan", "feb", "mar", "apr", "may", "jun",
                                                      "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr std::array<std::string_view, 7> kWeekdays = {"mon", "tue", "wed", "thu", "fri", "sat", "sun"};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
char LowerOf(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
bool IsLetter(char c) { return LowerOf(c) >= 'a' && LowerOf(c) <= 'z'; }

class DateScanner {
 public:
  explicit DateScanner(std::string_view text) : rest_(text) {}

  bool AtEnd() const { return rest_.empty(); }
  char Peek() const { return rest_.empty() ? '\0' : rest_.front(); }
  bool Take(char c) {
    if (Peek() != c || rest_.empty()) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void TakeBlanks() {
    while (Peek() == ' ' || Peek() == '\t') rest_.remove_prefix(1);
  }
  // From one to `most` digits; `length` is their number.
  std::optional<int> TakeNumber(size_t most, size_t& length) {
    int number = 0;
    length = 0;
    while (length < rest_.size() && IsDigit(rest_[length])) {
      if (length == most) return std::nullopt;
      number = number * 10 + (rest_[length++] - '0');
    }
    rest_.remove_prefix(length);
    return length == 0 ? std::nullopt : std::optional(number);
  }
  // The number of the word among `words`, of which it has at least the first letters.
  template <size_t N>
  std::optional<int> TakeWord(const std::array<std::string_view, N>& words) {
    size_t length = 0;
    while (length < rest_.size() && IsLetter(rest_[length])) ++length;
    for (size_t i = 0; i < N; ++i) {
      if (length < words[i].size()) continue;
      if (std::ranges::equal(words[i], rest_.substr(0, words[i].size()), {}, {}, LowerOf)) {
        rest_.remove_prefix(length);
        return static_cast<int>(i);
      }
    }
    return std::nullopt;
  }
  bool TakeText(std::string_view lower) {
    if (rest_.size() < lower.size() || !std::ranges::equal(lower, rest_.substr(0, lower.size()), {}, {}, LowerOf)) {
      return false;
    }
    rest_.remove_prefix(lower.size());
    return true;
  }

 private:
  std::string_view rest_;
};

bool SetDay(int year, size_t year_digits, int month, int day, DateTime& to) {
  if (year_digits == 2) year += year < 70 ? 2000 : 1900;
  if (year_digits != 2 && year_digits != 4) return false;
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (month < 1 || day < 1 || !date.ok()) return false;
  const std::chrono::sys_days days(date);
  to.seconds = static_cast<double>(days.time_since_epoch().count()) * 86400;
  to.year = year;
  to.month = month;
  to.weekday = static_cast<int>(std::chrono::weekday(days).iso_encoding()) - 1;
  return true;
}

// "jan 31, 2024", "jan 31 2024".
bool ReadMonthFirst(DateScanner& scan, int month, DateTime& to) {
  size_t digits = 0;
  scan.TakeBlanks();
  const auto day = scan.TakeNumber(2, digits);
  scan.Take(',');
  scan.TakeBlanks();
  const auto year = scan.TakeNumber(4, digits);
  return day && year && SetDay(*year, digits, month, *day, to);
}

// What follows a number and a separator.
bool ReadRest(DateScanner& scan, int first, size_t first_digits, char separator, bool day_first, DateTime& to) {
  size_t digits = 0;
  if (separator == ' ') scan.TakeBlanks();
  if (const auto month = scan.TakeWord(kMonths)) {
    scan.Take(separator);
    scan.TakeBlanks();
    const auto year = scan.TakeNumber(4, digits);
    return year && SetDay(*year, digits, *month + 1, first, to);
  }
  if (separator == ' ') return false;
  const auto second = scan.TakeNumber(2, digits);
  if (!second || !scan.Take(separator)) return false;
  const auto third = scan.TakeNumber(4, digits);
  if (!third) return false;
  if (first_digits == 4) return digits <= 2 && SetDay(first, 4, *second, *third, to);
  const bool day = day_first || separator == '.';
  return SetDay(*third, digits, day ? *second : first, day ? first : *second, to);
}

bool ReadZone(DateScanner& scan, DateTime& to) {
  if (scan.Take('Z') || scan.TakeText("utc") || scan.TakeText("gmt")) return true;
  const bool west = scan.Peek() == '-';
  if (!scan.Take('+') && !scan.Take('-')) return true;
  size_t digits = 0;
  auto hours = scan.TakeNumber(4, digits);
  if (!hours) return false;
  int minutes = *hours * 60;
  if (digits == 4) {
    minutes = *hours / 100 * 60 + *hours % 100;
  } else if (scan.Take(':')) {
    const auto more = scan.TakeNumber(2, digits);
    if (!more) return false;
    minutes += *more;
  }
  to.seconds += (west ? 60 : -60) * minutes;
  return true;
}

// What follows the hour.
bool ReadTime(DateScanner& scan, int hour, DateTime& to) {
  size_t digits = 0;
  if (!scan.Take(':')) return false;
  const auto minute = scan.TakeNumber(2, digits);
  if (!minute || digits != 2 || *minute > 59) return false;
  double second = 0;
  if (scan.Take(':')) {
    const auto whole = scan.TakeNumber(2, digits);
    if (!whole || *whole > 60) return false;
    second = *whole;
    if (scan.Take('.') || scan.Take(',')) {
      double unit = 0.1;
      for (; IsDigit(scan.Peek()); unit /= 10) {
        second += unit * (scan.Peek() - '0');
        scan.Take(scan.Peek());
      }
    }
  }
  scan.TakeBlanks();
  const bool am = scan.TakeText("am"), pm = !am && scan.TakeText("pm");
  if (am || pm) {
    if (hour < 1 || hour > 12) return false;
    hour = hour % 12 + (pm ? 12 : 0);
  }
  if (hour > 23) return false;
  to.hour = hour;
  to.seconds += hour * 3600 + *minute * 60 + second;
  scan.TakeBlanks();
  return ReadZone(scan, to);
}

bool ReadDay(DateScanner& scan, bool day_first, DateTime& to, bool& time) {
  if (scan.TakeWord(kWeekdays)) {
    scan.Take(',');
    scan.TakeBlanks();
  }
  if (const auto month = scan.TakeWord(kMonths)) return ReadMonthFirst(scan, *month + 1, to);
  size_t digits = 0;
  const auto first = scan.TakeNumber(8, digits);
  if (!first) return false;
  if (digits == 8) return SetDay(*first / 10000, 4, *first / 100 % 100, *first % 100, to);
  if (digits > 4) return false;
  const char separator = scan.Peek();
  if (separator == ':' && digits <= 2) {
    time = true;
    return ReadTime(scan, *first, to);
  }
  if (separator != '-' && separator != '/' && separator != '.' && separator != ' ') return false;
  scan.Take(separator);
  return ReadRest(scan, *first, digits, separator, day_first, to);
}

}  // namespace

double DateTime::Part(model::ColumnPart part) const {
  switch (part) {
    case model::ColumnPart::kYear:
      return year;
    case model::ColumnPart::kMonth:
      return month;
    case model::ColumnPart::kWeekday:
      return weekday;
    case model::ColumnPart::kHour:
      return hour;
    case model::ColumnPart::kTime:
    case model::ColumnPart::kValue:
      break;
  }
  return seconds;
}

std::optional<DateTime> ParseDate(std::string_view text, bool day_first) {
  DateScanner scan(text);
  DateTime date;
  bool time = false;
  scan.TakeBlanks();
  if (!ReadDay(scan, day_first, date, time)) return std::nullopt;
  if (!time && !scan.AtEnd()) {
    if (!scan.Take('T')) {
      scan.Take(',');
      if (scan.Peek() != ' ') return std::nullopt;
      scan.TakeBlanks();
    }
    size_t digits = 0;
    const auto hour = scan.TakeNumber(2, digits);
    if (!scan.AtEnd() || hour) {
      if (!hour || !ReadTime(scan, *hour, date)) return std::nullopt;
    }
  }
  scan.TakeBlanks();
  if (!scan.AtEnd()) return std::nullopt;
  return date;
}

}  // namespace medley::worker
