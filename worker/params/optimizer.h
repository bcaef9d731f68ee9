// The update rules, on plain spans of float32. The same code updates dense parameters in a trainer
// and rows in a parameter server, so both give the same numbers.
//
//   SGD:     w' = w - lr * g
//   Adagrad: s' = s + g^2;  w' = w - lr * g / (sqrt(s') + epsilon)      (Duchi, Hazan, Singer 2011)
//
// A zero gradient changes nothing in either rule, so untouched rows need no visit. Pure functions,
// thread-safe. Kernels are chosen at run time by what the processor has.
#pragma once

#include <absl/status/statusor.h>

#include <span>
#include <string_view>

namespace medley::worker {

enum class OptimizerKind { kSgd, kAdagrad };

struct Optimizer {
  OptimizerKind kind = OptimizerKind::kAdagrad;
  float learning_rate = 0.05F;
  float epsilon = 1e-10F;
  float initial_state = 0;  // of every element of the state before the first step

  bool operator==(const Optimizer&) const = default;
};

// `name` is spec.training.optimizer. Errors: InvalidArgument for an unknown name or a rate that is
// not positive.
absl::StatusOr<Optimizer> MakeOptimizer(std::string_view name, double learning_rate);

// Bytes of (weights + gradient + state) over bytes of weights: 2 for SGD, 3 for Adagrad.
double StateFactor(OptimizerKind kind);

// In place. All spans have one length; `state` is neither read nor written by SGD, but must have
// that length or be empty there.
void Apply(const Optimizer& optimizer, std::span<float> weights, std::span<float> state,
           std::span<const float> gradient);

// The same, reading the old values from one place and writing the new ones to another, which keeps
// the old ones for an undo. SGD copies the state where it has one. The spans of one side may not
// overlap the other's.
void ApplyTo(const Optimizer& optimizer, std::span<const float> weights, std::span<const float> state,
             std::span<const float> gradient, std::span<float> new_weights, std::span<float> new_state);

}  // namespace medley::worker
