#include "worker/data/number.h"

#include <absl/strings/match.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include "common/base/status.h"
#include "common/base/utf8.h"

namespace medley::worker {
namespace {

constexpr std::array<std::string_view, 17> kMissing = {"",         "?",      "-",       "nan",     "-nan",    "na",
                                                       "n/a",      "null",   "none",    "<na>",    "#na",     "#n/a",
                                                       "#n/a n/a", "1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan"};
constexpr size_t kLongestMissing = 8;
constexpr Value kMissingValue{ValueKind::kMissing, std::numeric_limits<double>::quiet_NaN()};

// Without blanks, those that a quoted field may have included.
std::string_view Strip(std::string_view text) {
  constexpr std::string_view kNoBreak = "\xc2\xa0";
  constexpr std::string_view kSpaces = " \t\r\n\v\f";
  while (true) {
    const size_t before = text.size();
    text.remove_prefix(std::min(text.find_first_not_of(kSpaces), text.size()));
    if (text.starts_with(kNoBreak)) text.remove_prefix(kNoBreak.size());
    while (!text.empty() && kSpaces.find(text.back()) != std::string_view::npos) text.remove_suffix(1);
    if (text.ends_with(kNoBreak)) text.remove_suffix(kNoBreak.size());
    if (text.size() == before) return text;
  }
}

// A number that from_chars finds to be out of range: 0 when it is too small, else infinity.
double OutOfRange(std::string_view digits) {
  const size_t exponent = digits.find_first_of("eE");
  const std::string_view mantissa = digits.substr(0, exponent);
  const bool small = exponent == std::string_view::npos ? mantissa.find_first_of("123456789") > mantissa.find('.')
                                                        : digits.substr(exponent + 1).starts_with('-');
  return small ? 0 : std::numeric_limits<double>::infinity();
}

bool IsDecimalDigit(char c) { return c >= '0' && c <= '9'; }

// Digits with at most one point, few enough that the number is the quotient of two whole numbers that a double holds:
// it is rounded once (Clinger, How to read floating point numbers accurately, 1990). Nothing for other text.
std::optional<double> ShortDecimal(std::string_view text) {
  constexpr size_t kMostCharacters = 16;  // with a point or a sign, or both; below 2^53
  constexpr double kPowers[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
  const bool minus = text.starts_with('-');
  const size_t first = minus ? 1 : 0;
  if (text.size() > kMostCharacters || text.size() == first) return std::nullopt;
  const char* const begin = text.data() + first;
  const char* const end = text.data() + text.size();
  int64_t number = 0;
  const char* at = begin;
  for (; at < end && IsDecimalDigit(*at); ++at) number = number * 10 + (*at - '0');
  auto digits = static_cast<size_t>(at - begin);
  size_t decimals = 0;
  if (at < end) {
    if (*at != '.') return std::nullopt;
    const char* const point = at++;
    for (; at < end && IsDecimalDigit(*at); ++at) number = number * 10 + (*at - '0');
    if (at < end) return std::nullopt;
    decimals = static_cast<size_t>(at - point) - 1;
    digits += decimals;
  }
  if (digits == 0 || digits > 15) return std::nullopt;
  double size = static_cast<double>(number);
  if (decimals > 0) size /= kPowers[decimals];
  return minus ? -size : size;
}

// Nothing for other text, also for "inf" and "nan".
std::optional<double> Decimal(std::string_view text) {
  if (const auto number = ShortDecimal(text)) return number;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end != text.data() + text.size() || error == std::errc::invalid_argument) return std::nullopt;
  if (error == std::errc::result_out_of_range) number = OutOfRange(text);
  if (!std::isfinite(number)) return std::nullopt;
  return number;
}

// Signs that from_chars does not know: + and the minus sign of Unicode.
std::optional<double> SignedDecimal(std::string_view text) {
  constexpr std::string_view kMinus = "\xe2\x88\x92";
  const bool minus = text.starts_with(kMinus);
  if (minus || text.starts_with('+')) {
    text.remove_prefix(minus ? kMinus.size() : 1);
    if (text.starts_with('-')) return std::nullopt;
    const auto number = Decimal(text);
    return number && minus ? -*number : number;
  }
  return Decimal(text);
}

// "1,234.5" and "-1,234,567": commas between all groups of three digits. Nothing for other text: "1,5" may be a decimal
// comma, and "0,125" cannot be thousands.
std::optional<double> GroupedDecimal(std::string_view text) {
  constexpr size_t kLongest = 64;
  if (text.size() > kLongest || text.find(',') == std::string_view::npos) return std::nullopt;
  const bool sign = text.starts_with('-') || text.starts_with('+');
  const std::string_view digits = text.substr(sign ? 1 : 0);
  const std::string_view whole = digits.substr(0, digits.find('.'));
  if (whole.empty() || whole[0] < '1' || whole[0] > '9') return std::nullopt;
  std::string plain = text.starts_with('-') ? "-" : "";
  for (size_t i = 0; i < whole.size(); ++i) {
    const bool comma = (whole.size() - i) % 4 == 0;  // before the last 3, 7, 11, ... characters
    if (comma != (whole[i] == ',')) return std::nullopt;
    if (!comma && (whole[i] < '0' || whole[i] > '9')) return std::nullopt;
    if (!comma) plain += whole[i];
  }
  const std::string_view fraction = digits.substr(whole.size());
  if (fraction.find_first_not_of("0123456789", std::min<size_t>(1, fraction.size())) != std::string_view::npos) {
    return std::nullopt;
  }
  return Decimal(plain.append(fraction));
}

}  // namespace

bool IsMissingText(std::string_view text) {
  text = Strip(text);
  return text.size() <= kLongestMissing && std::ranges::any_of(kMissing, [&](std::string_view word) {
           return absl::EqualsIgnoreCase(absl::string_view(text.data(), text.size()),
                                         absl::string_view(word.data(), word.size()));
         });
}

std::vector<std::string> MissingTexts() { return {kMissing.begin(), kMissing.end()}; }

ValueReader::ValueReader(const std::vector<std::string>& missing) {
  for (const std::string& text : missing) {
    texts_.emplace_back(Strip(text));
    auto number = SignedDecimal(texts_.back());
    if (!number) number = GroupedDecimal(texts_.back());
    if (number) numbers_.push_back(*number);
  }
}

bool ValueReader::IsOwnMissing(std::string_view text) const { return std::ranges::find(texts_, text) != texts_.end(); }

Value ValueReader::Of(double number) const {
  if (std::isnan(number)) return kMissingValue;
  if (!std::isfinite(number)) return {};
  if (!numbers_.empty() && std::ranges::find(numbers_, number) != numbers_.end()) return kMissingValue;
  return {ValueKind::kNumber, number};
}

Value ValueReader::Read(std::string_view text) const {
  if (text.empty()) return kMissingValue;
  auto number = Decimal(text);
  if (!number) {
    text = Strip(text);
    number = SignedDecimal(text);
    if (!number) number = GroupedDecimal(text);
  }
  if (number) return Of(*number);
  if (IsMissingText(text) || IsOwnMissing(text)) return kMissingValue;
  return {};
}

absl::Status ValueReader::ReadNumber(std::string_view text, int column, double& number) const {
  if (numbers_.empty()) {
    if (const auto plain = ShortDecimal(text)) {  // nearly all texts
      number = *plain;
      return absl::OkStatus();
    }
  }
  const Value value = Read(text);
  number = value.number;
  if (value.kind != ValueKind::kText) return absl::OkStatus();
  return base::InvalidArgument("column {}: '{}' is not a number", column, base::Printable(text));
}

}  // namespace medley::worker
