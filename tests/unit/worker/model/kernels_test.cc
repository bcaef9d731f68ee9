// Activations and their gradients against the same functions in double precision.
#include "worker/model/kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace medley::worker {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct ActivationCase {
  std::string name;
  Activation activation;
  std::function<double(double)> value, gradient;  // of the input
};

std::vector<ActivationCase> ActivationCases() {
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  return {
      {"relu", Activation::kRelu, [](double x) { return x < 0 ? 0 : x; }, [](double x) { return x > 0 ? 1.0 : 0.0; }},
      {"sigmoid", Activation::kSigmoid, sigmoid, [&](double x) { return sigmoid(x) * sigmoid(-x); }},
      {"tanh", Activation::kTanh, [](double x) { return std::tanh(x); },
       [](double x) { return 1 / (std::cosh(x) * std::cosh(x)); }},
      {"none", Activation::kNone, [](double x) { return x; }, [](double) { return 1.0; }}};
}

// What LinearForward gives for the inputs, with a weight of 1 and no bias.
std::vector<float> Activated(Activation activation, const std::vector<float>& inputs) {
  const float weight = 1, bias = 0;
  std::vector<float> outputs(inputs.size());
  ComputeThreads threads(1);
  LinearForward({inputs.data(), static_cast<int64_t>(inputs.size()), 1}, {&weight, 1, 1}, {&bias, 1}, activation,
                {outputs.data(), static_cast<int64_t>(outputs.size()), 1}, threads);
  return outputs;
}

std::vector<float> Gradients(Activation activation, const std::vector<float>& outputs,
                             const std::vector<float>& gradients) {
  std::vector<float> result = gradients;  // in place, as BlockModel does
  const auto rows = static_cast<int64_t>(outputs.size());
  ActivationBackward(activation, {outputs.data(), rows, 1}, {result.data(), rows, 1}, {result.data(), rows, 1});
  return result;
}

TEST(ActivationsTest, AreThoseOfDoublePrecision) {
  std::vector<float> inputs = {0, -0.0F, 1e-30F, -1e-30F, 88, -88, 104, -104, 1e4F, -1e4F};
  for (float x = -20; x < 20; x += 0.00731F) inputs.push_back(x);
  for (const ActivationCase& each : ActivationCases()) {
    const std::vector<float> outputs = Activated(each.activation, inputs);
    const std::vector<float> gradients = Gradients(each.activation, outputs, std::vector<float>(inputs.size(), 2));
    for (size_t i = 0; i < inputs.size(); ++i) {
      SCOPED_TRACE(each.name + " of " + std::to_string(inputs[i]));
      const double value = each.value(inputs[i]);
      ASSERT_NEAR(outputs[i], value, 3e-7 * std::max(1.0, std::abs(value)));
      ASSERT_NEAR(gradients[i], 2 * each.gradient(inputs[i]), 2e-6);
    }
  }
}

TEST(ActivationsTest, SaturateAndKeepNan) {
  for (const ActivationCase& each : ActivationCases()) {
    const std::vector<float> outputs =
        Activated(each.activation, {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()});
    SCOPED_TRACE(each.name);
    EXPECT_EQ(outputs[0], static_cast<float>(each.value(kInfinity)));
    EXPECT_EQ(outputs[1], static_cast<float>(each.value(-kInfinity)));
    EXPECT_TRUE(std::isnan(outputs[2]));
    EXPECT_TRUE(std::isnan(Gradients(each.activation, {0.5F}, {std::numeric_limits<float>::quiet_NaN()})[0]));
  }
}

}  // namespace
}  // namespace medley::worker
