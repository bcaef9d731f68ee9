// How fast this machine is, from moment to moment: the same work again and again, a tenth of one core.
//
//   build/bin/machine_speed [--duty 0.1]
//
// Figures of a virtual machine move by 10 to 30 % between minutes although nothing else runs on it, as its neighbours
// share caches, memory and clock frequency. A bench that compares measurements of different minutes runs this beside
// them, and asks how fast the machine was in each. The work is a training step of three dense layers by the kernels of
// trainers. Prints a line for each step until it is ended: the time (CLOCK_MONOTONIC) at its end, and its processor
// seconds.
#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <random>
#include <stop_token>
#include <vector>

#include "common/base/clock.h"
#include "common/base/processor_time.h"
#include "worker/model/compute_threads.h"
#include "worker/model/kernels.h"
#include "worker/params/optimizer.h"

namespace medley::worker {
namespace {

constexpr int64_t kSamples = 128, kWidth = 384;
constexpr size_t kLayers = 3;

using Values = std::vector<float>;

class Step {
 public:
  Step() {
    std::mt19937 random(1);
    std::normal_distribution<float> normal(0, 0.05F);
    for (size_t layer = 0; layer < kLayers; ++layer) {
      Layer& one =
          layers_.emplace_back(Layer{Values(kWidth * kWidth), Values(kWidth * kWidth, 1), Values(kWidth * kWidth),
                                     Values(kWidth), Values(kWidth), Values(kSamples * kWidth)});
      for (float& weight : one.weights) weight = normal(random);
    }
    for (float& value : batch_) value = normal(random);
  }

  void Run() {
    for (size_t layer = 0; layer < kLayers; ++layer) {
      Layer& one = layers_[layer];
      LinearForward(Input(layer), View(one.weights, kWidth), one.bias, Activation::kRelu, Change(one.values, kSamples),
                    threads_);
    }
    for (size_t i = 0; i < gradient_.size(); ++i) gradient_[i] = 1e-3F * layers_.back().values[i];
    for (size_t layer = kLayers; layer-- > 0;) {
      Layer& one = layers_[layer];
      ActivationAndBiasBackward(Activation::kRelu, View(one.values, kSamples), View(gradient_, kSamples),
                                Change(gradient_, kSamples), false, one.bias_gradient);
      LinearBackwardWeights(Input(layer), View(gradient_, kSamples), false, Change(one.gradient, kWidth), threads_);
      LinearBackwardInput(View(gradient_, kSamples), View(one.weights, kWidth), Change(before_, kSamples), threads_);
      gradient_.swap(before_);
      Apply(optimizer_, one.weights, one.state, one.gradient);
    }
  }

 private:
  struct Layer {
    Values weights, state, gradient, bias, bias_gradient, values;
  };
  static Matrix View(const Values& values, int64_t rows) { return {values.data(), rows, kWidth}; }
  static MutableMatrix Change(Values& values, int64_t rows) { return {values.data(), rows, kWidth}; }
  Matrix Input(size_t layer) const { return View(layer == 0 ? batch_ : layers_[layer - 1].values, kSamples); }

  const Optimizer optimizer_{.kind = OptimizerKind::kAdagrad, .learning_rate = 1e-6F};
  ComputeThreads threads_{1};
  std::vector<Layer> layers_;
  Values batch_ = Values(kSamples * kWidth), gradient_ = batch_, before_ = batch_;
};

}  // namespace
}  // namespace medley::worker

int main(int argc, char** argv) {
  namespace base = medley::base;
  double duty = 0.1;
  CLI::App app("How fast this machine is, from moment to moment.");
  app.add_option("--duty", duty, "part of one core")->check(CLI::Range(0.001, 1.0));
  CLI11_PARSE(app, argc, argv);
  medley::worker::Step step;
  base::SystemClock clock;
  while (true) {
    const double began = base::ProcessorSeconds();
    step.Run();
    const double spent = base::ProcessorSeconds() - began;
    std::printf("%.6f %.9f\n", base::ToSeconds(clock.Steady().time_since_epoch()), spent);
    if (std::fflush(stdout) != 0) return 0;
    clock.SleepFor(base::FromSeconds(spent * (1 / duty - 1)), std::stop_token());
  }
}
