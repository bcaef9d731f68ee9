#include "cli/model/describe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>
#include <vector>

namespace medley::cli {

std::string CountText(double value) {
  for (const auto& [unit, letter] : {std::pair{1e9, "G"}, std::pair{1e6, "M"}, std::pair{1e3, "k"}}) {
    if (value >= unit) return fmt::format("{:.1f} {}", value / unit, letter);
  }
  return fmt::format("{:.0f}", value);
}

std::string SizesText(const worker::exported::TensorMeta& meta) {
  std::vector<std::string> sizes;
  for (const worker::exported::SymInt& size : meta.sizes) {
    sizes.push_back(size.expression.empty() ? std::to_string(size.value) : "batch");
  }
  return fmt::format("[{}]", fmt::join(sizes, ", "));
}

std::string OutputText(const worker::cut::Cut& cut, const worker::cut::Operation& operation) {
  std::vector<std::string> all;
  for (const int crossing : operation.crossings) {
    all.push_back(SizesText(cut.program->tensors.at(cut.crossings[static_cast<size_t>(crossing)].value)));
  }
  return fmt::format("{}", fmt::join(all, " "));
}

double ParameterCount(const worker::cut::Cut& cut, const worker::cut::Operation& operation) {
  double count = 0;
  for (const std::string& name : operation.owned) {
    double product = 1;
    for (const int64_t size : cut.program->stored.at(name).sizes) product *= static_cast<double>(size);
    count += product;
  }
  return count;
}

double ParameterCount(const worker::cut::Cut& cut) {
  double count = 0;
  for (const worker::cut::Operation& operation : cut.operations) count += ParameterCount(cut, operation);
  return count;
}

double FlopCount(const worker::cut::Cut& cut) {
  double count = 0;
  for (const worker::cut::Operation& operation : cut.operations) count += operation.flops;
  return count;
}

}  // namespace medley::cli
