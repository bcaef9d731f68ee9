// The field that an error message speaks of. Errors of the tree begin with the field's path in its JSON spelling:
// "model.layers[0].profiles[1].commParallel: must be in [0, 1], is 2". Pure, thread-safe.
#pragma once

#include <absl/status/status.h>

#include <string>
#include <string_view>

namespace medley::sched {

// The path at the beginning of `message`, or empty when it names none ("line 3: ...").
std::string FieldOf(std::string_view message);

// The same error of a message that is the field `parent` of another one: "request.model...: ...". OK stays OK.
absl::Status WithinField(std::string_view parent, const absl::Status& status);

}  // namespace medley::sched
