#include "worker/params/update_kernels.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace medley::worker {
namespace {

constexpr float kLeastFtrlRate = 1e-12F;  // its inverse times weights must not overflow

[[gnu::always_inline]] inline void AdagradLoop(const UpdateSpans& s, const UpdateFactors& f) {
#pragma GCC ivdep
  for (size_t i = 0; i < s.size; ++i) {
    const float g = s.gradient[i] + f.decay * s.weights[i];
    const float sum = s.state[i] + g * g;
    s.new_state[i] = sum;
    s.new_weights[i] = s.weights[i] - f.rate * g / (std::sqrt(sum) + f.epsilon);
  }
}

[[gnu::always_inline]] inline void AdamLoop(const UpdateSpans& s, const UpdateFactors& f) {
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

[[gnu::always_inline]] inline void SgdLoop(const UpdateSpans& s, const UpdateFactors& f) {
#pragma GCC ivdep
  for (size_t i = 0; i < s.size; ++i) {
    s.new_weights[i] = s.weights[i] - f.rate * (s.gradient[i] + f.decay * s.weights[i]);
  }
}

[[gnu::always_inline]] inline void MomentumLoop(const UpdateSpans& s, const UpdateFactors& f) {
#pragma GCC ivdep
  for (size_t i = 0; i < s.size; ++i) {
    const float b = f.momentum * s.state[i] + (s.gradient[i] + f.decay * s.weights[i]);
    s.new_weights[i] = s.weights[i] - f.rate * b;
    s.new_state[i] = b;
  }
}

[[gnu::always_inline]] inline void NesterovLoop(const UpdateSpans& s, const UpdateFactors& f) {
#pragma GCC ivdep
  for (size_t i = 0; i < s.size; ++i) {
    const float g = s.gradient[i] + f.decay * s.weights[i];
    const float b = f.momentum * s.state[i] + g;
    s.new_weights[i] = s.weights[i] - f.rate * (g + f.momentum * b);
    s.new_state[i] = b;
  }
}

[[gnu::always_inline]] inline void RmspropLoop(const UpdateSpans& s, const UpdateFactors& f) {
#pragma GCC ivdep
  for (size_t i = 0; i < s.size; ++i) {
    const float g = s.gradient[i] + f.decay * s.weights[i];
    const float square = f.keep * s.state[i] + f.add * g * g;
    s.new_state[i] = square;
    s.new_weights[i] = s.weights[i] - f.rate * g / (std::sqrt(square) + f.epsilon);
  }
}

[[gnu::always_inline]] inline void RmspropMomentumLoop(const UpdateSpans& s, const UpdateFactors& f) {
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

// Without a gradient so far a weight has its initial value, and z is 0. Then z begins as the one of which the weight
// follows, and as long as all gradients are 0 the weight stays. (sqrt(n') - sqrt(n)) is g^2 / (sqrt(n') + sqrt(n)),
// which does not cancel; kTiny keeps 0 / 0 away and changes no other quotient.
[[gnu::always_inline]] inline void FtrlLoop(const UpdateSpans& s, const UpdateFactors& f) {
  constexpr float kTiny = std::numeric_limits<float>::min();
  const float* const linear = s.state + s.size;
  float* const new_linear = s.new_state + s.size;
#pragma GCC ivdep
  for (size_t i = 0; i < s.size; ++i) {
    const float w = s.weights[i];
    const float n = s.state[i];
    const float g = s.gradient[i] + f.decay * w;
    const float sum = n + g * g;
    const float root = std::sqrt(sum), old_root = std::sqrt(n);
    const float sign = w > 0 ? 1.0F : w < 0 ? -1.0F : 0.0F;
    const float begin = -(w * (f.per_rate * f.beta + f.l2) + sign * f.l1);
    const float before = n > 0 ? linear[i] : begin;
    const float z = before + g - f.per_rate * (g * g / (root + old_root + kTiny)) * w;
    const float excess = std::fabs(z) - f.l1;
    const float shrunk = excess > 0 ? excess : 0.0F;
    const float toward = z > 0 ? -shrunk : shrunk;
    const bool used = sum > 0;
    const float updated = toward / (f.per_rate * (f.beta + root) + f.l2 + kTiny);
    s.new_state[i] = sum;
    new_linear[i] = used ? z : linear[i];
    s.new_weights[i] = used ? updated : w;
  }
}

[[gnu::always_inline]] inline void AddLoop(float* to, const float* values, size_t size) {
#pragma GCC ivdep
  for (size_t i = 0; i < size; ++i) to[i] += values[i];
}

// Each loop is compiled for the baseline processor, for AVX2 and for AVX-512F.
using Loop = void (*)(const UpdateSpans&, const UpdateFactors&);
template <Loop kLoop>
void RunBaseline(const UpdateSpans& s, const UpdateFactors& f) {
  kLoop(s, f);
}
void AddBaseline(float* to, const float* values, size_t size) { AddLoop(to, values, size); }

#if defined(__x86_64__)
template <Loop kLoop>
[[gnu::target("avx2")]] void RunAvx2(const UpdateSpans& s, const UpdateFactors& f) {
  kLoop(s, f);
}
template <Loop kLoop>
[[gnu::target("avx512f,prefer-vector-width=512")]] void RunAvx512(const UpdateSpans& s, const UpdateFactors& f) {
  kLoop(s, f);
}
[[gnu::target("avx2")]] void AddAvx2(float* to, const float* values, size_t size) { AddLoop(to, values, size); }
[[gnu::target("avx512f,prefer-vector-width=512")]] void AddAvx512(float* to, const float* values, size_t size) {
  AddLoop(to, values, size);
}

bool Has(Instructions instructions) {
  switch (instructions) {
    case Instructions::kBaseline:
      return true;
    case Instructions::kAvx2:
      return __builtin_cpu_supports("avx2") != 0;
    case Instructions::kAvx512:
      return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("avx512f") != 0;
  }
  return false;
}

template <Loop kLoop>
UpdateKernel For(Instructions instructions) {
  if (instructions == Instructions::kAvx512) return RunAvx512<kLoop>;
  return instructions == Instructions::kAvx2 ? RunAvx2<kLoop> : RunBaseline<kLoop>;
}
#else
bool Has(Instructions instructions) { return instructions == Instructions::kBaseline; }

template <Loop kLoop>
UpdateKernel For(Instructions) {
  return RunBaseline<kLoop>;
}
#endif

}  // namespace

std::vector<Instructions> AvailableInstructions() {
  std::vector<Instructions> available;
  for (const Instructions one : {Instructions::kBaseline, Instructions::kAvx2, Instructions::kAvx512}) {
    if (Has(one)) available.push_back(one);
  }
  return available;
}

Instructions BestInstructions() {
  static const Instructions best = AvailableInstructions().back();
  return best;
}

UpdateKernel UpdateKernelOf(const Optimizer& optimizer, Instructions instructions) {
  switch (optimizer.kind) {
    case OptimizerKind::kSgd:
      return For<SgdLoop>(instructions);
    case OptimizerKind::kAdagrad:
      return For<AdagradLoop>(instructions);
    case OptimizerKind::kAdam:
    case OptimizerKind::kAdamW:
      return For<AdamLoop>(instructions);
    case OptimizerKind::kMomentum:
      return optimizer.nesterov ? For<NesterovLoop>(instructions) : For<MomentumLoop>(instructions);
    case OptimizerKind::kRmsprop:
      return For<RmspropLoop>(instructions);
    case OptimizerKind::kRmspropMomentum:
      return For<RmspropMomentumLoop>(instructions);
    case OptimizerKind::kFtrl:
      return For<FtrlLoop>(instructions);
  }
  return nullptr;
}

AddKernel AddKernelOf([[maybe_unused]] Instructions instructions) {
#if defined(__x86_64__)
  if (instructions == Instructions::kAvx512) return AddAvx512;
  if (instructions == Instructions::kAvx2) return AddAvx2;
#endif
  return AddBaseline;
}

UpdateFactors FactorsOf(const Optimizer& o) {
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
          .add = static_cast<float>(1 - o.alpha),
          .l1 = o.l1,
          .l2 = o.l2,
          .beta = o.ftrl_beta,
          .per_rate = 1 / std::max(o.learning_rate, kLeastFtrlRate)};
}

}  // namespace medley::worker
