// Inputs of a model, as text: what a TorchScript file does not tell. Pure.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace medley::worker::torchscript {

struct SampleInput {
  std::string name;            // of the argument of forward
  bool integers = false;       // int64, else float32
  std::vector<int64_t> shape;  // of one sample
  bool operator==(const SampleInput&) const = default;
};

// "image:float32:1,28,28"; a single number has no sizes: "price:float32:".
std::string Text(const SampleInput& input);
absl::StatusOr<SampleInput> ParseSample(std::string_view text);

}  // namespace medley::worker::torchscript
