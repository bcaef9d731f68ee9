// Numbers in fields of a file. Pure functions.
#pragma once

#include <absl/status/status.h>

#include <string_view>

namespace medley::worker {

// NaN for a missing value (empty, "?", "NULL", "NA"). Errors: InvalidArgument naming the column, also when the number
// is not finite.
absl::Status ReadNumber(std::string_view text, int column, float& number);

}  // namespace medley::worker
