#include "common/model/input_validate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/base/status.h"
#include "common/model/job_bounds.h"

namespace medley::model {

absl::Status ValidateInputs(const JobSpec& spec) {
  const int64_t most = MostNumbersOfInput();
  for (size_t i = 0; i < spec.data.schema.inputs.size(); ++i) {
    const InputSpec& input = spec.data.schema.inputs[i];
    int64_t count = 1;
    for (const int64_t size : input.shape) {
      if (size >= 1 && size <= most && (count *= size) <= most) continue;
      return base::InvalidArgument("spec.data.inputs[{}].shape: [{}] must have from 1 to {} numbers", i,
                                   fmt::join(input.shape, ", "), most);
    }
  }
  return absl::OkStatus();
}

}  // namespace medley::model
