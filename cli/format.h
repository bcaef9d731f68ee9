// Numbers and times as people read them. Pure; ASCII.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"

namespace medley::cli {

// 12345.6 -> "12,346".
std::string Thousands(double value);
// Two decimals, four where they say something, six below a cent.
std::string Usd(double value);
// "1 restart", "2 restarts".
std::string Counted(int64_t count, std::string_view noun);
// `text`, or "-" for what is not known.
inline std::string OrDash(bool known, const std::string& text) { return known ? text : "-"; }
// "+3.8 %", from a to b; "" when a is 0.
std::string Percent(double from, double to);
// "45s", "12m", "3h05m", "2d04h".
std::string Span(double seconds);
// Span since `time` (RFC 3339); "-" when it is empty or unreadable.
std::string Ago(std::string_view time, base::WallTime now);
// Text cut at newlines.
std::vector<std::string> Lines(const std::string& text);
// Text cut at spaces into lines of at most `width` columns where words allow; later lines are
// indented by two.
std::vector<std::string> Wrapped(const std::string& text, size_t width);

}  // namespace medley::cli
