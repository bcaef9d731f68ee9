#include "common/base/figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace medley::base {

std::string Figure(double value, int digits) {
  if (!std::isfinite(value)) return "unknown";
  const double size = std::abs(value);
  if (size == 0) return "0";
  constexpr double kGrouped = 999.5;
  if (size < kGrouped) {
    const int decimals = std::max(0, digits - 1 - static_cast<int>(std::floor(std::log10(size))));
    std::string text = fmt::format("{:.{}f}", value, std::min(decimals, 30));
    if (text.find('.') != std::string::npos) {
      text.erase(text.find_last_not_of('0') + 1);
      if (text.back() == '.') text.pop_back();
    }
    return text == "-0" ? "0" : text;
  }
  std::string text = fmt::format("{:.0f}", size);
  for (size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
  return (value < 0 ? "-" : "") + text;
}

}  // namespace medley::base
