// Details: a short machine-readable text that an error carries beside its message. Annotate keeps it, and
// common/rpc/status.h sends it with gRPC errors. Pure, thread-safe.
#pragma once

#include <absl/status/status.h>

#include <string>
#include <string_view>

namespace medley::base {

// Does nothing if `status` is OK.
absl::Status WithDetails(absl::Status status, std::string_view details);
// Returns the details, or an empty string if the status has none.
std::string Details(const absl::Status& status);

}  // namespace medley::base
