// Lowers a TorchScript model to the form in which torch.export writes models, so that one reader and one runtime do
// for both.
//
// The model is followed from its `forward` into its submodules, call by call: what depends on attributes and sizes
// alone is computed, conditions and loops over it are resolved, and calls of ATen become nodes with the path of their
// module. Every call is executed with batches of three sizes, which tell how its result's shape depends on the batch.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <utility>
#include <vector>

#include "worker/torchscript/sample.h"

namespace medley::worker::torchscript {

// The entries of an archive of PyTorch 2.9: the program and its weights.
using Entries = std::vector<std::pair<std::string, std::string>>;

// `file`: what torch.jit.save wrote. The model is lowered as in training. Errors: InvalidArgument for a file that
// cannot be read, for inputs that do not fit, a fixed batch, sizes that do not follow from the batch alone;
// Unimplemented, with operator, module and line, for control flow that follows from data, and for values other than
// tensors and numbers.
absl::StatusOr<Entries> Lower(const std::string& file, const std::vector<SampleInput>& inputs);

}  // namespace medley::worker::torchscript
