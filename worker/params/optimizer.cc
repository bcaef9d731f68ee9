#include "worker/params/optimizer.h"

#include <algorithm>
#include <cmath>

#include "common/base/status.h"

namespace medley::worker {
namespace {

// Each kernel is one loop, compiled for the baseline processor and for AVX2; each call selects by the processor's
// features. The new spans may be the old ones: each element is read before it is written.
struct Spans {
  const float* weights;
  const float* state;
  const float* gradient;
  float* new_weights;
  float* new_state;
  size_t size;
};

[[gnu::always_inline]] inline void AdagradLoop(const Spans& s, float rate, float epsilon) {
  for (size_t i = 0; i < s.size; ++i) {
    const float g = s.gradient[i];
    const float sum = s.state[i] + g * g;
    s.new_state[i] = sum;
    s.new_weights[i] = s.weights[i] - rate * g / (std::sqrt(sum) + epsilon);
  }
}

[[gnu::always_inline]] inline void SgdLoop(const Spans& s, float rate) {
  for (size_t i = 0; i < s.size; ++i) s.new_weights[i] = s.weights[i] - rate * s.gradient[i];
}

void AdagradBaseline(const Spans& s, float rate, float epsilon) { AdagradLoop(s, rate, epsilon); }
void SgdBaseline(const Spans& s, float rate) { SgdLoop(s, rate); }

#if defined(__x86_64__)
[[gnu::target("avx2")]] void AdagradAvx2(const Spans& s, float rate, float epsilon) { AdagradLoop(s, rate, epsilon); }
[[gnu::target("avx2")]] void SgdAvx2(const Spans& s, float rate) { SgdLoop(s, rate); }
bool HasAvx2() { return __builtin_cpu_supports("avx2") != 0; }
#else
void AdagradAvx2(const Spans& s, float rate, float epsilon) { AdagradLoop(s, rate, epsilon); }
void SgdAvx2(const Spans& s, float rate) { SgdLoop(s, rate); }
bool HasAvx2() { return false; }
#endif

void Run(const Optimizer& optimizer, const Spans& spans) {
  const bool wide = HasAvx2();
  if (optimizer.kind == OptimizerKind::kAdagrad) {
    (wide ? AdagradAvx2 : AdagradBaseline)(spans, optimizer.learning_rate, optimizer.epsilon);
  } else {
    (wide ? SgdAvx2 : SgdBaseline)(spans, optimizer.learning_rate);
  }
}

void CheckSizes(const Optimizer& optimizer, size_t weights, size_t state, size_t gradient) {
  MEDLEY_CHECK(weights == gradient, "weights and gradient must have the same size");
  MEDLEY_CHECK(state == weights || (state == 0 && optimizer.kind == OptimizerKind::kSgd),
               "the optimizer state must have the size of the weights");
}

}  // namespace

absl::StatusOr<Optimizer> MakeOptimizer(std::string_view name, double learning_rate) {
  if (!(learning_rate > 0) || !std::isfinite(learning_rate)) {
    return base::InvalidArgument("spec.training.optimizer.learningRate: {} is not above 0", learning_rate);
  }
  Optimizer optimizer;
  optimizer.learning_rate = static_cast<float>(learning_rate);
  if (name == "adagrad") {
    optimizer.kind = OptimizerKind::kAdagrad;
  } else if (name == "sgd") {
    optimizer.kind = OptimizerKind::kSgd;
  } else {
    return base::InvalidArgument("spec.training.optimizer.name: '{}' is not one of adagrad, sgd", name);
  }
  return optimizer;
}

Optimizer Optimizer::AtStep(int64_t step) const {
  Optimizer out = *this;
  out.learning_rate = static_cast<float>(learning_rate * RateFactor(schedule, step));
  return out;
}

double StateFactor(OptimizerKind kind) { return kind == OptimizerKind::kAdagrad ? 3 : 2; }

void Apply(const Optimizer& optimizer, std::span<float> weights, std::span<float> state,
           std::span<const float> gradient) {
  CheckSizes(optimizer, weights.size(), state.size(), gradient.size());
  Run(optimizer, {weights.data(), state.data(), gradient.data(), weights.data(), state.data(), weights.size()});
}

void ApplyTo(const Optimizer& optimizer, std::span<const float> weights, std::span<const float> state,
             std::span<const float> gradient, std::span<float> new_weights, std::span<float> new_state) {
  CheckSizes(optimizer, weights.size(), state.size(), gradient.size());
  MEDLEY_CHECK(new_weights.size() == weights.size() && new_state.size() == state.size(),
               "old and new values must have the same size");
  Run(optimizer, {weights.data(), state.data(), gradient.data(), new_weights.data(), new_state.data(), weights.size()});
  if (optimizer.kind == OptimizerKind::kSgd) std::copy(state.begin(), state.end(), new_state.begin());
}

}  // namespace medley::worker
