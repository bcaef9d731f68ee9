// Where the batch is in a tensor of an exported program. Pure.
//
// PyTorch merges axes: attention makes [length, batch, width] to [length * batch, width], in which the values of a
// sample are not next to each other. Such a tensor cannot be divided into rows of samples, although its first size
// grows with the batch. So the place of the batch is followed from the inputs through every call.
#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <string>

#include "worker/exported/program.h"

namespace medley::worker::cut {

struct BatchPlace {
  int axis = 0;        // whose size is `factor` times the batch
  int64_t factor = 1;  // > 0
  int64_t inner = 1;   // neighbours along the axis that are of one sample; it divides the factor
  // Dividing the axis divides the samples.
  bool Outermost() const { return inner == factor; }
};

// By value; values are left out that have no such axis, or several. `batch`: the symbol. Errors: sizes that cannot be
// evaluated.
absl::StatusOr<std::map<std::string, BatchPlace>> BatchPlaces(const exported::Program& program,
                                                              const std::string& batch);

}  // namespace medley::worker::cut
