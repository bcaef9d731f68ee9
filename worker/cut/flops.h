// The arithmetic of calls: multiplications and additions of one forward pass, per sample. Pure.
#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "worker/exported/program.h"

namespace medley::worker::cut {

// For a node of `program`, whose batch is the symbol `batch`: products of matrices and convolutions exactly, attention
// without its softmax, other calls one for each element of their results. Errors: sizes that cannot be evaluated.
absl::StatusOr<double> FlopsOf(const exported::Program& program, int node, const std::string& batch);

}  // namespace medley::worker::cut
