// The update rules, on plain spans of float32. The same code updates dense parameters in a trainer and rows in a
// parameter server, so both compute the same numbers.
//
//   SGD:     w' = w - lr * g
//   Adagrad: s' = s + g^2;  w' = w - lr * g / (sqrt(s') + epsilon)      (Duchi, Hazan, Singer 2011)
//
// A zero gradient changes nothing in either rule, so rows that a step does not touch are skipped. Pure functions,
// thread-safe. The kernel is chosen at run time: AVX2 if the processor has it.
#pragma once

#include <absl/status/statusor.h>

#include <span>
#include <string_view>

#include "worker/params/rate_schedule.h"

namespace medley::worker {

enum class OptimizerKind { kSgd, kAdagrad };

struct Optimizer {
  OptimizerKind kind = OptimizerKind::kAdagrad;
  float learning_rate = 0.05F;  // of a step: see AtStep
  float epsilon = 1e-10F;
  float initial_state = 0;  // value of every element of the optimizer state before the first step

  RateSchedule schedule;

  // This optimizer with the learning rate of `step` >= 1.
  Optimizer AtStep(int64_t step) const;
  bool operator==(const Optimizer&) const = default;
};

// `name` is spec.training.optimizer.name. Errors: InvalidArgument for an unknown name or a rate that is not positive.
absl::StatusOr<Optimizer> MakeOptimizer(std::string_view name, double learning_rate);

// The ratio of bytes of (weights + gradient + state) to bytes of weights: 2 for SGD, 3 for Adagrad.
double StateFactor(OptimizerKind kind);

// Updates `weights` and `state` in place. All spans have the same length. SGD ignores `state`, which may then be empty.
void Apply(const Optimizer& optimizer, std::span<float> weights, std::span<float> state,
           std::span<const float> gradient);

// The same, but writes the new values to other spans, so that the old ones remain for an undo. SGD copies a state that
// is not empty. Old and new spans may not overlap.
void ApplyTo(const Optimizer& optimizer, std::span<const float> weights, std::span<const float> state,
             std::span<const float> gradient, std::span<float> new_weights, std::span<float> new_state);

}  // namespace medley::worker
