// What would have to change: a sentence for every reason of operator/api/reasons.h. Pure.
#pragma once

#include <string>
#include <string_view>

namespace medley::cli {

// What to do about a condition of `job` with this reason; "" when nothing is to be done, or for a
// reason that is not known.
std::string Advice(std::string_view reason, std::string_view job);

// True for a reason that Advice knows, also where nothing is to be done.
bool IsKnownReason(std::string_view reason);

}  // namespace medley::cli
