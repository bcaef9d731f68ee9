// What programs, not people, read in an error: a short text beside the message, kept by Annotate and carried over RPC
// (common/rpc/status.h). Pure, thread-safe.
#pragma once

#include <absl/status/status.h>

#include <string>
#include <string_view>

namespace medley::base {

// OK stays OK.
absl::Status WithDetails(absl::Status status, std::string_view details);
// Empty: none.
std::string Details(const absl::Status& status);

}  // namespace medley::base
