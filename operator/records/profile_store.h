// Reads profiles from text: from the line that a profiler prints and from the ConfigMap that stores it. Pure.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>

#include "common/model/forward.h"
#include "kube/object.h"

namespace medley::ops {

// The JSON of the last line "MEDLEY-PROFILE {json}" of a log. Errors: NotFound.
absl::StatusOr<std::string> ProfileJsonInLog(std::string_view log);

// Reads a profile from JSON (medley.profile.v1.Profile). Errors: InvalidArgument, also for a profile that lacks the
// numbers of a layer on `pool`.
absl::StatusOr<model::Profile> ParseProfile(std::string_view json, std::string_view pool);

// The last line of a log that is not blank, for messages; at most 500 bytes.
std::string LastLine(std::string_view log);

}  // namespace medley::ops
