// Durations as Go writes them: "1h30m", "-1.5s", "300ms", "0". Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace medley::cel {

// False: not a duration, or one of more than 292 years.
bool ParseDuration(std::string_view text, int64_t& nanoseconds);

// As CEL's string() writes it, in seconds: "5400s", "0.3s".
std::string FormatDuration(int64_t nanoseconds);

}  // namespace medley::cel
