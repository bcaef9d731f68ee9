#include "worker/data/inputs.h"

#include <fmt/ranges.h>

#include <limits>

#include "common/base/status.h"
#include "common/model/data_spec.h"

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

std::string DescribeNamed(const std::vector<model::InputSpec>& named) {
  std::vector<std::string> texts;
  for (const model::InputSpec& input : named) {
    texts.push_back(fmt::format("{}: {} [{}]", input.name, input.type == "float32" ? "floats" : "integers",
                                fmt::join(input.shape, ", ")));
  }
  return fmt::format("{}", fmt::join(texts, "; "));
}

// Columns have one axis, and give a tensor of any shape with as many numbers.
bool SameShape(const ModelInput& input, const model::InputSpec& spec) {
  if (spec.columns.empty()) return input.shape == spec.shape;
  int64_t count = 1;
  for (const int64_t size : input.shape) count *= size;
  return count == static_cast<int64_t>(spec.columns.size());
}

absl::StatusOr<std::vector<InputSlice>> NamedLayout(const std::vector<ModelInput>& inputs,
                                                    const std::vector<model::InputSpec>& named) {
  std::vector<InputSlice> slices;
  for (const ModelInput& input : inputs) {
    int64_t integers = 0, floats = 0;
    const model::InputSpec* found = nullptr;
    for (const model::InputSpec& spec : named) {
      int64_t count = 1;
      for (const int64_t size : spec.shape) count *= size;
      int64_t& first = spec.type == "float32" ? floats : integers;
      if (spec.name == input.name) {
        found = &spec;
        slices.push_back({input.name, input.integers, static_cast<int>(first), static_cast<int>(count), input.shape});
        break;
      }
      first += count;
    }
    if (found == nullptr || (found->type != "float32") != input.integers || !SameShape(input, *found)) {
      return base::InvalidArgument("spec.data.inputs: {} '{}'; the model takes {}, the data have {}",
                                   found == nullptr ? "there is none for" : "another type or shape has", input.name,
                                   Describe(inputs), DescribeNamed(named));
    }
  }
  if (inputs.size() == named.size()) return slices;
  return base::InvalidArgument("spec.data.inputs: the model does not take all of them; it takes {}, the data have {}",
                               Describe(inputs), DescribeNamed(named));
}

}  // namespace

absl::StatusOr<std::vector<InputSlice>> InputLayout(const std::vector<ModelInput>& inputs, const SampleShape& shape,
                                                    const std::vector<model::InputSpec>& named) {
  if (!named.empty()) return NamedLayout(inputs, named);
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
