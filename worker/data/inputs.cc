#include "worker/data/inputs.h"

#include <fmt/ranges.h>

#include <limits>

#include "common/base/status.h"

namespace medley::worker {
namespace {

std::string Describe(const std::vector<ModelInput>& inputs) {
  std::vector<std::string> texts;
  for (const ModelInput& input : inputs) {
    texts.push_back(
        fmt::format("{}: {} [{}]", input.name, input.integers ? "integers" : "floats", fmt::join(input.shape, ", ")));
  }
  return fmt::format("{}", fmt::join(texts, "; "));
}

}  // namespace

absl::StatusOr<std::vector<InputSlice>> InputLayout(const std::vector<ModelInput>& inputs, const SampleShape& shape) {
  std::vector<InputSlice> slices;
  int64_t integers = 0, floats = 0;
  for (const ModelInput& input : inputs) {
    int64_t count = 1;
    for (const int64_t size : input.shape) {
      if (size < 0 || __builtin_mul_overflow(count, size, &count) || count > std::numeric_limits<int>::max()) {
        return base::InvalidArgument("the model's input '{}' has too many numbers a sample", input.name);
      }
    }
    int64_t& used = input.integers ? integers : floats;
    slices.push_back({input.name, input.integers, static_cast<int>(used), static_cast<int>(count), input.shape});
    used += count;
    if (used > std::numeric_limits<int>::max())
      return base::InvalidArgument("the model's inputs have too many numbers a sample");
  }
  if (integers != shape.fields || floats != shape.numerics) {
    return base::InvalidArgument(
        "spec.data: a sample has {} integers and {} floats, but the model takes {} and {} ({})", shape.fields,
        shape.numerics, integers, floats, Describe(inputs));
  }
  return slices;
}

}  // namespace medley::worker
