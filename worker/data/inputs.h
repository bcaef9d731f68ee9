// Where the inputs of a model are in a sample. Pure.
//
// A sample is a row of whole numbers (BatchView::ids) and one of floats (BatchView::numerics). The inputs of a model
// take them one after the other: in the order of spec.data.inputs, by their names, or in the order of its arguments.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "worker/data/batch.h"

namespace medley::model {
struct InputSpec;
}

namespace medley::worker {

struct ModelInput {
  std::string name;
  bool integers = false;
  std::vector<int64_t> shape;  // of one sample
};

struct InputSlice {
  std::string name;
  bool integers = false;  // of the ids; else of the numerics
  int first = 0;          // within the row
  int count = 0;
  std::vector<int64_t> shape;  // of one sample
};

// In the order of the model's arguments. `named`: spec.data.inputs, or none. Errors: InvalidArgument that
// says what the model takes and what the data have, unless all of them are used.
absl::StatusOr<std::vector<InputSlice>> InputLayout(const std::vector<ModelInput>& inputs, const SampleShape& shape,
                                                    const std::vector<model::InputSpec>& named);

}  // namespace medley::worker
