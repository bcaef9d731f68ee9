#include "cli/data/number_forms.h"

#include <algorithm>
#include <array>

#include "worker/data/number.h"

namespace medley::cli {

bool LooksLikeNumber(const std::string& text) {
  constexpr std::array<std::string_view, 9> kIgnored = {
      " ",       "'", "%", "$", "\xc2\xa0", "\xe2\x80\xaf", "\xe2\x80\x99", "\xe2\x82\xac",
      "\xc2\xa3"};  // blanks, ', euro, pound
  // Negative numbers of accountants: (1,234).
  if (text.size() > 2 && text.front() == '(' && text.back() == ')') {
    const std::string inner = text.substr(1, text.size() - 2);
    return worker::ValueReader().Read(inner).kind == worker::ValueKind::kNumber || LooksLikeNumber(inner);
  }
  std::string plain;
  for (size_t at = 0; at < text.size();) {
    const auto ignored = std::ranges::find_if(
        kIgnored, [&](std::string_view part) { return std::string_view(text).substr(at).starts_with(part); });
    if (ignored != kIgnored.end()) {
      at += ignored->size();
    } else {
      plain += text[at] == ',' ? '.' : text[at];
      ++at;
    }
  }
  // Other texts of digits are names: addresses (10.0.0.1), lists (1,2,3), telephone numbers (0170 12345).
  const bool points = std::ranges::count(text, '.') > 0;
  if (plain.size() == text.size() && text.find(',') == std::string::npos) return false;
  if (std::ranges::count(text, ',') > 1 && !points) return false;
  if (plain.size() > 1 && plain[0] == '0' && plain[1] != '.') return false;
  std::string once;  // with the last point only
  for (size_t at = 0, last = plain.rfind('.'); at < plain.size(); ++at) {
    if (plain[at] != '.' || at == last) once += plain[at];
  }
  const bool digits = once.find_first_of("0123456789") != std::string::npos;
  return digits && worker::ValueReader().Read(once).kind == worker::ValueKind::kNumber;
}

std::string UnitOf(const std::string& text) {
  constexpr size_t kLongestUnit = 4;
  size_t begin = text.size();
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  while (begin > 0 && letter(text[begin - 1])) --begin;
  const size_t unit = text.size() - begin;
  if (unit == 0 || unit > kLongestUnit) return "";
  const std::string number = text.substr(0, begin > 0 && text[begin - 1] == ' ' ? begin - 1 : begin);
  return worker::ValueReader().Read(number).kind == worker::ValueKind::kNumber ? text.substr(begin) : "";
}

bool IsHexadecimal(const std::string& text) {
  return text.size() > 2 && text.size() < 19 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X') &&
         text.find_first_not_of("0123456789abcdefABCDEF", 2) == std::string::npos;
}

}  // namespace medley::cli
