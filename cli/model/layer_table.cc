#include "cli/model/layer_table.h"

#include <absl/strings/ascii.h>
#include <fmt/format.h>

#include <utility>

#include "cli/model/describe.h"
#include "common/model/model.h"

namespace medley::cli {
namespace {

constexpr double kFloatBytes = sizeof(float);

// Bytes of a sample of the model's inputs that the operation reads.
double BatchBytes(const worker::cut::Cut& cut, const worker::cut::Operation& operation) {
  double bytes = 0;
  for (const worker::exported::Input& input : cut.program->inputs) {
    bool read = false;
    for (const std::string& name : operation.batch) read = read || name == input.name;
    if (!read) continue;
    const auto one = worker::cut::SizesOf(cut, input.value, 2), two = worker::cut::SizesOf(cut, input.value, 3);
    if (!one.ok() || !two.ok()) continue;
    double numbers[2] = {1, 1};
    for (const int64_t size : *one) numbers[0] *= static_cast<double>(size);
    for (const int64_t size : *two) numbers[1] *= static_cast<double>(size);
    bytes += kFloatBytes * (numbers[1] - numbers[0]);  // of one sample more
  }
  return bytes;
}

}  // namespace

model::Model LayerTable(const std::string& name, const worker::cut::Cut& cut) {
  model::Model model;
  model.name = name;
  for (size_t i = 0; i < cut.operations.size(); ++i) {
    const worker::cut::Operation& operation = cut.operations[i];
    model::Layer& layer = model.layers.emplace_back();
    layer.name = operation.name;
    layer.kind = absl::AsciiStrToUpper(operation.kind);
    layer.output_bytes = kFloatBytes * static_cast<double>(operation.output_floats);
    layer.weight_bytes = kFloatBytes * ParameterCount(cut, operation);
    layer.input_bytes = BatchBytes(cut, operation);
    for (const int input : operation.inputs) {
      layer.input_bytes += kFloatBytes * static_cast<double>(cut.operations[static_cast<size_t>(input)].output_floats);
    }
    if (operation.inputs != std::vector<int>{static_cast<int>(i) - 1}) layer.inputs = operation.inputs;
    if (!operation.batch.empty()) {
      layer.inputs = operation.inputs;
      layer.inputs.insert(layer.inputs.begin(), -1);
    }
    layer.attributes["flops"] = fmt::format("{:.0f}", operation.flops);
    layer.attributes["calls"] = std::to_string(std::max<size_t>(1, operation.nodes.size()));
    if (operation.activation_floats > 0) {
      layer.attributes["activationBytes"] =
          fmt::format("{:.0f}", kFloatBytes * static_cast<double>(operation.activation_floats));
    }
  }
  model::Layer& loss = model.layers.emplace_back();
  loss.name = "loss";
  loss.kind = "LOSS";
  loss.input_bytes = kFloatBytes * static_cast<double>(cut.result_floats);
  loss.output_bytes = kFloatBytes;
  return model;
}

}  // namespace medley::cli
