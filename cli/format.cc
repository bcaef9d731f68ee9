#include "cli/format.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace medley::cli {

std::string Thousands(double value) {
  const std::string digits = fmt::format("{:.0f}", std::abs(value));
  std::string out;
  if (value <= -0.5) out.push_back('-');
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) out.push_back(',');
    out.push_back(digits[i]);
  }
  return out;
}

std::string WithSpread(double value, double spread) {
  return Thousands(value) + (spread > 0 ? fmt::format(" +- {:.0f} %", std::max(1.0, 100 * spread)) : "");
}

std::string Usd(double value) {
  std::string text = fmt::format("{:.{}f}", value, std::abs(value) < 0.01 ? 6 : 4);
  while (text.back() == '0' && text[text.size() - 3] != '.') text.pop_back();
  return text == "-0.00" ? "0.00" : text;
}

std::string Counted(int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string Percent(double from, double to) { return from == 0 ? "" : fmt::format("{:+.1f} %", (to / from - 1) * 100); }

std::string Span(double seconds) {
  const auto s = static_cast<int64_t>(std::llround(std::max(0.0, seconds)));
  if (s < 120) return fmt::format("{}s", s);
  if (s < 3600) return fmt::format("{}m", (s + 30) / 60);
  if (s < 48 * 3600) return fmt::format("{}h{:02}m", s / 3600, s % 3600 / 60);
  return fmt::format("{}d{:02}h", s / 86400, s % 86400 / 3600);
}

std::string Ago(std::string_view time, base::WallTime now) {
  const auto then = base::ParseTime(time);
  return time.empty() || !then.ok() ? "-" : Span(base::ToSeconds(now - *then));
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

std::vector<std::string> Wrapped(const std::string& text, size_t width) {
  std::vector<std::string> lines;
  std::string line;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (!line.empty() && line.size() + 1 + word.size() > width) {
      lines.push_back(std::move(line));
      line = "  " + word;
    } else {
      line += (begin == 0 ? "" : " ") + word;
    }
    begin = end + 1;
  }
  lines.push_back(std::move(line));
  return lines;
}

}  // namespace medley::cli
