// Profiles as text: the line that a profiler prints, and the ConfigMap that keeps it. Pure.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>

#include "common/model/model.h"
#include "kube/object.h"

namespace medley::ops {

// The JSON of the last line "MEDLEY-PROFILE {json}" of a log. Errors: NotFound.
absl::StatusOr<std::string> ProfileJsonInLog(std::string_view log);

// Profile JSON (medley.profile.v1.Profile). Errors: InvalidArgument; a profile without numbers for
// `pool` is one.
absl::StatusOr<model::Profile> ParseProfile(std::string_view json, std::string_view pool);

// The last line of a log that says something, for messages; at most 500 bytes.
std::string LastLine(std::string_view log);

}  // namespace medley::ops
