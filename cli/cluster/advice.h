// Advice to the user for every reason of operator/api/reasons.h. Pure.
#pragma once

#include <string>
#include <string_view>

namespace medley::cli {

// Returns what the user can do about a condition of `job` with this reason; "" when there is nothing to do, or the
// reason is unknown.
std::string Advice(std::string_view reason, std::string_view job);

}  // namespace medley::cli
