#include "worker/params/optimizer.h"

#include <algorithm>
#include <cmath>

#include "common/base/status.h"
#include "worker/params/update_kernels.h"

namespace medley::worker {
namespace {

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
  } else if (name == "ftrl") {
    optimizer.kind = OptimizerKind::kFtrl;
  } else {
    return base::InvalidArgument(
        "spec.training.optimizer.name: '{}' is not one of adagrad, adam, adamw, ftrl, rmsprop, sgd", name);
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
    case OptimizerKind::kFtrl:
      return 2;
  }
  return 0;
}

size_t RowFloats(OptimizerKind kind, size_t columns) { return columns * (1 + StateFloats(kind)); }

bool IsRowWidth(OptimizerKind kind, size_t columns, size_t floats) {
  return floats == RowFloats(kind, columns) || (kind == OptimizerKind::kSgd && floats == 2 * columns);
}

void Apply(const Optimizer& optimizer, std::span<float> weights, std::span<float> state,
           std::span<const float> gradient) {
  CheckSizes(optimizer, weights.size(), state.size(), gradient.size());
  UpdateKernelOf(optimizer, BestInstructions())(
      {weights.data(), state.data(), gradient.data(), weights.data(), state.data(), weights.size()},
      FactorsOf(optimizer));
}

void ApplyTo(const Optimizer& optimizer, std::span<const float> weights, std::span<const float> state,
             std::span<const float> gradient, std::span<float> new_weights, std::span<float> new_state) {
  CheckSizes(optimizer, weights.size(), state.size(), gradient.size());
  MEDLEY_CHECK(new_weights.size() == weights.size() && new_state.size() == state.size(),
               "old and new values must have the same size");
  UpdateKernelOf(optimizer, BestInstructions())(
      {weights.data(), state.data(), gradient.data(), new_weights.data(), new_state.data(), weights.size()},
      FactorsOf(optimizer));
  if (optimizer.kind == OptimizerKind::kSgd) std::copy(state.begin(), state.end(), new_state.begin());
}

}  // namespace medley::worker
