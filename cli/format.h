// Formats numbers and times for users. Pure; ASCII.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"

namespace medley::cli {

// 12345.6 -> "12,346".
std::string Thousands(double value);
// Thousands, with its relative standard deviation if that is known (> 0): "12,346 +- 3 %".
std::string WithSpread(double value, double spread);
// At least two decimals; up to four without trailing zeros, up to six below one cent.
std::string Usd(double value);
// "1 restart", "2 restarts".
std::string Counted(int64_t count, std::string_view noun);
// `text` if the value is known, else "-".
inline std::string OrDash(bool known, const std::string& text) { return known ? text : "-"; }
// The relative change, for example "+3.8 %"; "" when `from` is 0.
std::string Percent(double from, double to);
// "45s", "12m", "3h05m", "2d04h".
std::string Span(double seconds);
// The Span since `time` (RFC 3339); "-" when `time` is empty or cannot be parsed.
std::string Ago(std::string_view time, base::WallTime now);
// Splits text at newlines.
std::vector<std::string> Lines(const std::string& text);
// Splits text at spaces into lines of at most `width` columns, longer only for a long word. Indents all lines but the
// first by two columns.
std::vector<std::string> Wrapped(const std::string& text, size_t width);

}  // namespace medley::cli
