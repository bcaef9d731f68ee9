#include "common/cel/duration.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <utility>

namespace medley::cel {
namespace {

constexpr std::array<std::pair<std::string_view, int64_t>, 8> kUnits = {{
    {"ns", 1},
    {"us", 1'000},
    {"\xC2\xB5s", 1'000},  // micro sign
    {"\xCE\xBCs", 1'000},  // Greek mu
    {"ms", 1'000'000},
    {"s", 1'000'000'000},
    {"m", 60'000'000'000},
    {"h", 3'600'000'000'000},
}};
constexpr __int128 kMost = std::numeric_limits<int64_t>::max();

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Takes digits from the front into `value`, in units of 1 / `scale`. False: the number is too large.
bool TakeDigits(std::string_view& text, __int128& value, __int128* scale) {
  while (!text.empty() && IsDigit(text[0])) {
    const bool room = value < kMost / 10;
    if (!room && scale == nullptr) return false;
    if (room) {  // digits of a fraction beyond those that count are skipped
      value = value * 10 + (text[0] - '0');
      if (scale != nullptr) *scale *= 10;
    }
    text.remove_prefix(1);
  }
  return true;
}

bool TakeUnit(std::string_view& text, int64_t& unit) {
  size_t end = 0;
  while (end < text.size() && text[end] != '.' && !IsDigit(text[end])) ++end;
  for (const auto& [name, nanoseconds] : kUnits) {
    if (text.substr(0, end) != name) continue;
    unit = nanoseconds;
    text.remove_prefix(end);
    return true;
  }
  return false;
}

}  // namespace

bool ParseDuration(std::string_view text, int64_t& nanoseconds) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text == "0") {
    nanoseconds = 0;
    return true;
  }
  if (text.empty()) return false;
  __int128 total = 0;
  while (!text.empty()) {
    __int128 whole = 0;
    __int128 fraction = 0;
    __int128 scale = 1;
    const size_t before = text.size();
    if (!TakeDigits(text, whole, nullptr)) return false;
    size_t digits = before - text.size();
    if (text.starts_with('.')) {
      text.remove_prefix(1);
      const size_t rest = text.size();
      TakeDigits(text, fraction, &scale);
      digits += rest - text.size();
    }
    int64_t unit = 0;
    if (digits == 0 || !TakeUnit(text, unit)) return false;
    total += whole * unit + fraction * unit / scale;
    if (total > kMost + (negative ? 1 : 0)) return false;
  }
  nanoseconds = static_cast<int64_t>(negative ? -total : total);
  return true;
}

std::string FormatDuration(int64_t nanoseconds) {
  const uint64_t magnitude =
      nanoseconds < 0 ? 0 - static_cast<uint64_t>(nanoseconds) : static_cast<uint64_t>(nanoseconds);
  std::string text = fmt::format("{}{}", nanoseconds < 0 ? "-" : "", magnitude / 1'000'000'000);
  if (const uint64_t rest = magnitude % 1'000'000'000; rest != 0) {
    std::string digits = fmt::format("{:09}", rest);
    digits.erase(digits.find_last_not_of('0') + 1);
    text += "." + digits;
  }
  return text + "s";
}

}  // namespace medley::cel
