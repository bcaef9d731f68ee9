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

struct Factors {
  float keep1, add1, keep2, add2;  // of Adam's moments
  float rate, scale, epsilon;      // of Adam: lr / (1 - b1^t), 1 / sqrt(1 - b2^t)
  float decay;                     // of the gradient
  float shrink;                    // of the weights: 1 - lr * weight decay for AdamW, else 1
  float momentum;
  float keep, add;  // of RMSprop's mean square
};

[[gnu::always_inline]] inline void AdagradLoop(const Spans& s, const Factors& f) {
#pragma GCC ivdep
  for (size_t i = 0; i < s.size; ++i) {
    const float g = s.gradient[i] + f.decay * s.weights[i];
    const float sum = s.state[i] + g * g;
    s.new_state[i] = sum;
    s.new_weights[i] = s.weights[i] - f.rate * g / (std::sqrt(sum) + f.epsilon);
  }
}

[[gnu::always_inline]] inline void AdamLoop(const Spans& s, const Factors& f) {
  const float* const first = s.state;
  const float* const second = s.state + s.size;
  float* const new_first = s.new_state;
  float* const new_second = s.new_state + s.size;
#pragma GCC ivdep
  for (size_t i = 0; i < s.size; ++i) {
    const float g = s.gradient[i] + f.decay * s.weights[i];
    const float m = f.keep1 * first[i] + f.add1 * g;
    const float v = f.keep2 * second[i] + f.add2 * g * g;
    new_first[i] = m;
    new_second[i] = v;
    s.new_weights[i] = f.shrink * s.weights[i] - f.rate * m / (std::sqrt(v) * f.scale + f.epsilon);
  }
}

[[gnu::always_inline]] inline void SgdLoop(const Spans& s, const Factors& f) {
#pragma GCC ivdep
  for (size_t i = 0; i < s.size; ++i) {
    s.new_weights[i] = s.weights[i] - f.rate * (s.gradient[i] + f.decay * s.weights[i]);
  }
}

[[gnu::always_inline]] inline void MomentumLoop(const Spans& s, const Factors& f) {
#pragma GCC ivdep
  for (size_t i = 0; i < s.size; ++i) {
    const float b = f.momentum * s.state[i] + (s.gradient[i] + f.decay * s.weights[i]);
    s.new_weights[i] = s.weights[i] - f.rate * b;
    s.new_state[i] = b;
  }
}

[[gnu::always_inline]] inline void NesterovLoop(const Spans& s, const Factors& f) {
#pragma GCC ivdep
  for (size_t i = 0; i < s.size; ++i) {
    const float g = s.gradient[i] + f.decay * s.weights[i];
    const float b = f.momentum * s.state[i] + g;
    s.new_weights[i] = s.weights[i] - f.rate * (g + f.momentum * b);
    s.new_state[i] = b;
  }
}

[[gnu::always_inline]] inline void RmspropLoop(const Spans& s, const Factors& f) {
#pragma GCC ivdep
  for (size_t i = 0; i < s.size; ++i) {
    const float g = s.gradient[i] + f.decay * s.weights[i];
    const float square = f.keep * s.state[i] + f.add * g * g;
    s.new_state[i] = square;
    s.new_weights[i] = s.weights[i] - f.rate * g / (std::sqrt(square) + f.epsilon);
  }
}

[[gnu::always_inline]] inline void RmspropMomentumLoop(const Spans& s, const Factors& f) {
  const float* const momenta = s.state + s.size;
  float* const new_momenta = s.new_state + s.size;
#pragma GCC ivdep
  for (size_t i = 0; i < s.size; ++i) {
    const float g = s.gradient[i] + f.decay * s.weights[i];
    const float square = f.keep * s.state[i] + f.add * g * g;
    const float b = f.momentum * momenta[i] + g / (std::sqrt(square) + f.epsilon);
    s.new_state[i] = square;
    new_momenta[i] = b;
    s.new_weights[i] = s.weights[i] - f.rate * b;
  }
}

[[gnu::always_inline]] inline void Select(const Optimizer& optimizer, const Spans& spans, const Factors& factors) {
  switch (optimizer.kind) {
    case OptimizerKind::kSgd:
      return SgdLoop(spans, factors);
    case OptimizerKind::kAdagrad:
      return AdagradLoop(spans, factors);
    case OptimizerKind::kAdam:
    case OptimizerKind::kAdamW:
      return AdamLoop(spans, factors);
    case OptimizerKind::kMomentum:
      return optimizer.nesterov ? NesterovLoop(spans, factors) : MomentumLoop(spans, factors);
    case OptimizerKind::kRmsprop:
      return RmspropLoop(spans, factors);
    case OptimizerKind::kRmspropMomentum:
      return RmspropMomentumLoop(spans, factors);
  }
}

void RunBaseline(const Optimizer& o, const Spans& s, const Factors& f) { Select(o, s, f); }
#if defined(__x86_64__)
[[gnu::target("avx2")]] void RunAvx2(const Optimizer& o, const Spans& s, const Factors& f) { Select(o, s, f); }
bool HasAvx2() { return __builtin_cpu_supports("avx2") != 0; }
#else
void RunAvx2(const Optimizer& o, const Spans& s, const Factors& f) { Select(o, s, f); }
bool HasAvx2() { return false; }
#endif

Factors FactorsOf(const Optimizer& o) {
  const bool adam = o.kind == OptimizerKind::kAdam || o.kind == OptimizerKind::kAdamW;
  const bool apart = o.kind == OptimizerKind::kAdamW;  // the decay is not part of the gradient
  return {.keep1 = static_cast<float>(o.beta1),
          .add1 = static_cast<float>(1 - o.beta1),
          .keep2 = static_cast<float>(o.beta2),
          .add2 = static_cast<float>(1 - o.beta2),
          .rate = adam ? o.learning_rate * o.correction1 : o.learning_rate,
          .scale = o.correction2,
          .epsilon = o.epsilon,
          .decay = apart ? 0 : o.weight_decay,
          .shrink = apart ? 1 - o.learning_rate * o.weight_decay : 1,
          .momentum = o.momentum,
          .keep = static_cast<float>(o.alpha),
          .add = static_cast<float>(1 - o.alpha)};
}

void Run(const Optimizer& optimizer, const Spans& spans) {
  (HasAvx2() ? RunAvx2 : RunBaseline)(optimizer, spans, FactorsOf(optimizer));
}

void CheckSizes(const Optimizer& optimizer, size_t weights, size_t state, size_t gradient) {
  MEDLEY_CHECK(weights == gradient, "weights and gradient must have the same size");
  MEDLEY_CHECK(optimizer.kind == OptimizerKind::kSgd || state == StateFloats(optimizer.kind) * weights,
               "the optimizer state must fit the weights");
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
  } else if (name == "adam") {
    optimizer.kind = OptimizerKind::kAdam;
    optimizer.epsilon = 1e-8F;
  } else if (name == "adamw") {
    optimizer.kind = OptimizerKind::kAdamW;
    optimizer.epsilon = 1e-8F;
    optimizer.weight_decay = 0.01F;
  } else if (name == "rmsprop") {
    optimizer.kind = OptimizerKind::kRmsprop;
    optimizer.epsilon = 1e-8F;
  } else {
    return base::InvalidArgument("spec.training.optimizer.name: '{}' is not one of adagrad, adam, adamw, rmsprop, sgd",
                                 name);
  }
  return optimizer;
}

Optimizer Optimizer::AtStep(int64_t step) const {
  Optimizer out = *this;
  out.learning_rate = static_cast<float>(learning_rate * RateFactor(schedule, step));
  if (kind == OptimizerKind::kAdam || kind == OptimizerKind::kAdamW) {
    const auto t = static_cast<double>(step);
    out.correction1 = static_cast<float>(1 / (1 - std::pow(beta1, t)));
    out.correction2 = static_cast<float>(1 / std::sqrt(1 - std::pow(beta2, t)));
  }
  return out;
}

Optimizer Optimizer::ForRows() const {
  Optimizer out = *this;
  out.weight_decay = row_decay.value_or(weight_decay);
  return out;
}

double StateFactor(OptimizerKind kind) { return 2 + static_cast<double>(StateFloats(kind)); }

size_t StateFloats(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::kSgd:
      return 0;
    case OptimizerKind::kAdagrad:
    case OptimizerKind::kMomentum:
    case OptimizerKind::kRmsprop:
      return 1;
    case OptimizerKind::kRmspropMomentum:
    case OptimizerKind::kAdam:
    case OptimizerKind::kAdamW:
      return 2;
  }
  return 0;
}

size_t RowFloats(OptimizerKind kind, size_t columns) { return columns * (1 + std::max<size_t>(1, StateFloats(kind))); }

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
