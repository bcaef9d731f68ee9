#include "worker/torchscript/sample.h"

#include <absl/strings/str_split.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>

#include "common/base/status.h"

namespace medley::worker::torchscript {

std::string Text(const SampleInput& input) {
  return fmt::format("{}:{}:{}", input.name, input.integers ? "int64" : "float32", fmt::join(input.shape, ","));
}

absl::StatusOr<SampleInput> ParseSample(std::string_view text) {
  constexpr int64_t kMost = 1 << 24;
  const auto refuse = [&] {
    return base::InvalidArgument("the input '{}' is not of the form NAME:float32:1,28,28 (or int64)", text);
  };
  const std::vector<std::string> parts = absl::StrSplit(std::string(text), ':');
  if (parts.size() != 3 || parts[0].empty() || (parts[1] != "float32" && parts[1] != "int64")) return refuse();
  SampleInput input{parts[0], parts[1] == "int64", {}};
  int64_t numbers = 1;
  if (parts[2].empty()) return input;
  const std::vector<std::string> sizes = absl::StrSplit(parts[2], ",");
  for (const std::string& part : sizes) {
    int64_t size = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), size);
    if (error != std::errc() || end != part.data() + part.size() || size < 1 || size > kMost) return refuse();
    if ((numbers *= size) > kMost) return refuse();
    input.shape.push_back(size);
  }
  return input;
}

}  // namespace medley::worker::torchscript
