// Parameters that several operations of a model have. Pure.
#pragma once

#include <absl/status/status.h>

#include "common/model/forward.h"
#include "common/program/program.h"

namespace medley::program {

// Whether operations of the model share parameters (Layer::attributes["shared"], lines "FLOATS NAME").
bool HasShared(const model::Model& model);

// Program::shared, without groups, from the model and the blocks. Errors: InvalidArgument for an attribute that is not
// as above, and for operations that say different sizes; Unimplemented, with the operations, for schedules and modes in
// which the holders would be updated at different times.
absl::Status AddShared(const model::Model& model, Program& program);

}  // namespace medley::program
