// Every optimizer with its settings against PyTorch's (tests/golden/optimizer/make_torch.py).
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "worker/params/optimizer.h"
#include "worker/params/optimizer_of.h"

namespace medley::worker {
namespace {

struct Variant {
  const char* name;
  model::TrainingSpec training;
};

model::TrainingSpec Spec(const char* optimizer, double rate) {
  model::TrainingSpec training;
  training.optimizer = optimizer;
  training.learning_rate = rate;
  return training;
}

std::vector<Variant> Variants() {
  std::vector<Variant> variants = {{"sgd", Spec("sgd", 0.1)},
                                   {"sgd, decay", Spec("sgd", 0.1)},
                                   {"momentum", Spec("sgd", 0.1)},
                                   {"momentum, decay", Spec("sgd", 0.1)},
                                   {"nesterov, decay", Spec("sgd", 0.1)},
                                   {"adagrad, decay", Spec("adagrad", 0.1)},
                                   {"adagrad, accumulator", Spec("adagrad", 0.1)},
                                   {"adam, decay", Spec("adam", 0.01)},
                                   {"adamw", Spec("adamw", 0.01)},
                                   {"adamw, decay", Spec("adamw", 0.01)},
                                   {"rmsprop", Spec("rmsprop", 0.01)},
                                   {"rmsprop, momentum, decay", Spec("rmsprop", 0.01)}};
  for (Variant& variant : variants) {
    const std::string name = variant.name;
    if (name.ends_with("decay")) variant.training.weight_decay = 0.02;
    if (name.starts_with("momentum")) variant.training.momentum = 0.9;
    if (name.ends_with("accumulator")) variant.training.initial_accumulator = 0.1;
  }
  variants[4].training.momentum = 0.8;
  variants[4].training.nesterov = true;
  variants[9].training.weight_decay = 0.3;
  variants[9].training.beta1 = 0.8;
  variants[9].training.beta2 = 0.95;
  variants[11].training.momentum = 0.5;
  variants[11].training.alpha = 0.9;
  return variants;
}

TEST(TorchOptimizersTest, TwentyStepsAreThoseOfPyTorch) {
  std::ifstream file(std::string(std::getenv("MEDLEY_SOURCE_DIR")) + "/tests/golden/optimizer/torch_optimizers.json");
  const nlohmann::json expected = nlohmann::json::parse(file);
  ASSERT_EQ(expected.size(), Variants().size());
  for (const Variant& variant : Variants()) {
    const auto optimizer = OptimizerOf(variant.training);
    ASSERT_TRUE(optimizer.ok()) << optimizer.status();
    constexpr size_t kCount = 5;
    std::array<float, kCount> weights{}, gradient{};
    std::vector<float> state(kCount * StateFloats(optimizer->kind), optimizer->initial_state);
    for (size_t i = 0; i < kCount; ++i) weights[i] = (static_cast<float>(i) - 2) / 4;
    for (int step = 1; step <= 20; ++step) {
      for (size_t i = 0; i < kCount; ++i) {
        gradient[i] = static_cast<float>(std::sin(step + static_cast<double>(i)) / 2) + weights[i] / 8;
      }
      Apply(optimizer->AtStep(step), weights, state, gradient);
      for (size_t i = 0; i < kCount; ++i) {
        const auto value = expected[variant.name][static_cast<size_t>(step) - 1][i].get<double>();
        ASSERT_NEAR(weights[i], value, 2e-6) << variant.name << ", step " << step << ", weight " << i;
      }
    }
  }
}

}  // namespace
}  // namespace medley::worker
