#include "reproductions/tapp/features.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace medley::reproductions::tapp {
namespace {

constexpr float kAbsent = -0.1F;  // TAPP, section 4.1 (3)
constexpr double kMega = 1e6;

}  // namespace

int KindIndex(const std::string& kind) {
  // Names of Medley's layers, then parts of those of PyTorch's modules.
  static const std::array<std::vector<std::string>, kLayerKinds - 1> kNames = {{{"CONVOLUTION", "CONV"},
                                                                                {"ACTIVATION", "RELU"},
                                                                                {"POOLING", "POOL"},
                                                                                {"FULLY_CONNECTED", "LINEAR"},
                                                                                {"PADDING", "PAD"}}};
  for (size_t i = 0; i < kNames.size(); ++i) {
    for (const std::string& name : kNames[i]) {
      if (kind.find(name) != std::string::npos) return static_cast<int>(i);
    }
  }
  return kLayerKinds - 1;
}

std::vector<LayerFeatures> FeaturesOf(const sched::DeviceProblem& problem) {
  const model::Model& model = problem.profile().model;
  std::vector<LayerFeatures> out(model.layers.size());
  for (size_t i = 0; i < model.layers.size(); ++i) {
    out[i].kind = KindIndex(model.layers[i].kind);
    std::vector<int> inputs = model.layers[i].inputs;
    if (inputs.empty() && i > 0) inputs = {static_cast<int>(i) - 1};
    for (const int input : inputs) {
      if (input >= 0) out[static_cast<size_t>(input)].consumers.push_back(static_cast<int>(i));
    }
  }
  for (size_t metric = 0; metric < 3; ++metric) {
    std::vector<double> values;
    for (int i = 0; i < problem.layers(); ++i) {
      const model::Layer& layer = model.layers[static_cast<size_t>(i)];
      values.push_back(metric == 0   ? layer.weight_bytes / kMega
                       : metric == 1 ? problem.WorkOf(i, i + 1, 0).At(1)
                                     : layer.output_bytes * problem.samples() / kMega);
    }
    const double largest = std::max(*std::ranges::max_element(values), 1e-12);
    double sum = 0, before = 0;
    for (const double value : values) sum += value;
    sum = std::max(sum, 1e-12);
    for (size_t i = 0; i < values.size(); ++i) {
      before += values[i];
      float* numbers = &out[i].metrics[4 * metric];
      numbers[0] = static_cast<float>(values[i] / largest);
      numbers[1] = static_cast<float>(std::log1p(values[i]) / std::log1p(largest));
      numbers[2] = static_cast<float>(values[i] / sum);
      numbers[3] = static_cast<float>(before / sum);
    }
  }
  for (LayerFeatures& layer : out) {
    for (size_t k = 0; k < 2; ++k) {
      const bool known = k < layer.consumers.size();
      const double number = known ? (layer.consumers[k] + 1.0) / problem.layers() : 0;
      layer.next[2 * k] = known ? static_cast<float>(number) : kAbsent;
      layer.next[2 * k + 1] = known ? 1.0F : kAbsent;
    }
  }
  return out;
}

}  // namespace medley::reproductions::tapp
