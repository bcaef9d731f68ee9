#include "common/base/quantity.h"

#include <charconv>
#include <cmath>

#include "common/base/status.h"

namespace medley::base {
namespace {

struct Suffix {
  std::string_view text;
  double factor;
};
constexpr Suffix kSuffixes[] = {
    {"", 1},        {"n", 1e-9},    {"u", 1e-6},    {"m", 1e-3},    {"k", 1e3},     {"M", 1e6},
    {"G", 1e9},     {"T", 1e12},    {"P", 1e15},    {"E", 1e18},    {"Ki", 0x1p10}, {"Mi", 0x1p20},
    {"Gi", 0x1p30}, {"Ti", 0x1p40}, {"Pi", 0x1p50}, {"Ei", 0x1p60},
};

}  // namespace

absl::StatusOr<double> ParseQuantity(std::string_view text) {
  std::string_view rest = text;
  bool negative = false;
  if (!rest.empty() && (rest[0] == '+' || rest[0] == '-')) {
    negative = rest[0] == '-';
    rest.remove_prefix(1);
  }
  // A quantity begins with a digit or a dot; from_chars alone would also accept "inf" and "nan".
  if (rest.empty() || !(rest[0] == '.' || (rest[0] >= '0' && rest[0] <= '9'))) {
    return InvalidArgument("'{}' is not a quantity such as 500m, 2.5 or 16Gi", text);
  }
  double value = 0;
  // Parse the digits without an exponent first: "1E" is one exa, "1e3" is a thousand.
  auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value, std::chars_format::fixed);
  if (error != std::errc()) return InvalidArgument("'{}' is not a quantity such as 500m, 2.5 or 16Gi", text);
  rest.remove_prefix(static_cast<size_t>(end - rest.data()));
  double factor = 0;
  for (const Suffix& suffix : kSuffixes) {
    if (rest == suffix.text) factor = suffix.factor;
  }
  if (factor == 0 && rest.size() > 1 && (rest[0] == 'e' || rest[0] == 'E')) {
    int exponent = 0;
    const char* first = rest.data() + (rest[1] == '+' ? 2 : 1);
    auto [last, code] = std::from_chars(first, rest.data() + rest.size(), exponent);
    if (code == std::errc() && last == rest.data() + rest.size()) factor = std::pow(10.0, exponent);
  }
  if (factor == 0)
    return InvalidArgument("'{}' is not a quantity such as 500m, 2.5 or 16Gi: unknown suffix '{}'", text, rest);
  value *= factor;
  if (!std::isfinite(value)) return InvalidArgument("quantity '{}' is out of range", text);
  return negative ? -value : value;
}

absl::StatusOr<int64_t> ParseBytes(std::string_view text) {
  MEDLEY_ASSIGN_OR_RETURN(const double value, ParseQuantity(text));
  if (value < 0) return InvalidArgument("'{}' bytes must not be negative", text);
  if (value >= 0x1p63) return InvalidArgument("quantity '{}' is out of range", text);
  return static_cast<int64_t>(std::ceil(value));
}

std::string FormatDecimal(double value, int digits) {
  std::string text = fmt::format("{:.{}f}", value, digits);
  if (text.find('.') != std::string::npos) {
    while (text.back() == '0') text.pop_back();
    if (text.back() == '.') text.pop_back();
  }
  return text == "-0" ? "0" : text;
}

}  // namespace medley::base
