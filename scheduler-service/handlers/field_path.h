// Finds the field that an error message names. Messages begin with the path of the field in JSON names:
// "model.layers[0].profiles[1].commParallel: must be in [0, 1], is 2". Pure, thread-safe.
#pragma once

#include <absl/status/status.h>

#include <string>
#include <string_view>

namespace medley::sched {

// The path at the beginning of `message`; empty if the message names no field ("line 3: ...").
std::string FieldOf(std::string_view message);

// Prefixes the field path of an error with `parent`: "model.name: ..." becomes "request.model.name: ...". Returns OK
// unchanged.
absl::Status WithinField(std::string_view parent, const absl::Status& status);

}  // namespace medley::sched
