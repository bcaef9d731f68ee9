// The update rules, on plain spans of float32. The same code updates dense parameters in a trainer and rows in a
// parameter server, so both compute the same numbers.
//
//   SGD:     w' = w - lr * g
//   Adagrad: s' = s + g^2;  w' = w - lr * g / (sqrt(s') + epsilon)      (Duchi, Hazan, Singer 2011)
//   Adam:    m' = b1 * m + (1 - b1) * g;  v' = b2 * v + (1 - b2) * g^2  (Kingma, Ba 2015; torch.optim.Adam)
//            w' = w - lr / (1 - b1^t) * m' / (sqrt(v' / (1 - b2^t)) + epsilon)
//   Momentum (torch.optim.SGD): b' = mu * b + g;  w' = w - lr * b', or w - lr * (g + mu * b') with nesterov
//   RMSprop: s' = a * s + (1 - a) * g^2;  w' = w - lr * g / (sqrt(s') + epsilon)      (torch.optim.RMSprop)
//            with momentum b' = mu * b + g / (sqrt(s') + epsilon);  w' = w - lr * b'
//   AdamW:   Adam of w * (1 - lr * weight decay)                       (Loshchilov, Hutter 2019; torch.optim.AdamW)
//   FTRL:    n' = n + g^2;  z' = z + g - (sqrt(n') - sqrt(n)) / lr * w      (FTRL-Proximal: McMahan et al. 2013)
//            w' = 0 if |z'| <= l1, else (sign(z') * l1 - z') / ((beta + sqrt(n')) / lr + l2)
//            The paper's weights begin at 0, and so does z. Here a weight without any gradient yet keeps its initial
//            value, and begins with the z of which it follows: so layers that must not begin at 0 can be trained too.
//
// With a weight decay, g of all but AdamW is g + weight decay * w.
// That of rows of embedding tables may be another one (ForRows).
//
// Rows that a step does not touch are skipped. In SGD and Adagrad without a weight decay that changes nothing, because
// their gradient is zero.
// In Adam the moments of such a row keep their values, as in torch.optim.SparseAdam and LazyAdam of TensorFlow. The t
// of the bias correction is the number of the job's step for dense parameters and for rows, as in SparseAdam, with its
// one count for a table: so a row needs no count of its own, and an undo, a restart or a move of rows changes nothing.
//
// Pure functions, thread-safe. The kernel is chosen at run time: AVX-512F or AVX2 if the processor has it. All compute
// the same bits (update_kernels.h).
#pragma once

#include <absl/status/statusor.h>

#include <optional>
#include <span>
#include <string_view>

#include "worker/params/rate_schedule.h"
#include "worker/params/row_lifetime.h"

namespace medley::worker {

enum class OptimizerKind { kSgd, kAdagrad, kAdam, kMomentum, kAdamW, kRmsprop, kRmspropMomentum, kFtrl };

struct Optimizer {
  OptimizerKind kind = OptimizerKind::kAdagrad;
  float learning_rate = 0.05F;  // of a step: see AtStep
  float epsilon = 1e-10F;
  double beta1 = 0.9;     // Adam: decay of the first moment, in [0, 1)
  double beta2 = 0.999;   // Adam: decay of the second moment, in [0, 1)
  float correction1 = 1;  // Adam, of a step: 1 / (1 - b1^t)
  float correction2 = 1;  // Adam, of a step: 1 / sqrt(1 - b2^t)
  double alpha = 0.99;    // RMSprop: decay of the mean square, in [0, 1)
  float momentum = 0;     // mu of kMomentum and kRmspropMomentum, in (0, 1)
  bool nesterov = false;  // kMomentum
  float ftrl_beta = 1;    // FTRL: >= 0
  float l1 = 0, l2 = 0;   // FTRL: >= 0
  float weight_decay = 0;
  std::optional<float> row_decay;  // weight decay of rows of embedding tables; absent: weight_decay
  float clip_norm = 0;             // the largest norm of all gradients together, applied by the executor; 0: none
  float initial_state = 0;         // value of every element of the optimizer state before the first step

  RateSchedule schedule;
  RowLifetime lifetime;  // of rows of embedding tables

  // This optimizer with the learning rate and the bias correction of `step` >= 1.
  Optimizer AtStep(int64_t step) const;
  // This optimizer for rows of embedding tables.
  Optimizer ForRows() const;
  bool operator==(const Optimizer&) const = default;
};

// `name` is spec.training.optimizer.name. Errors: InvalidArgument for an unknown name or a rate that is not positive.
// The betas, epsilon and weight decay are those of PyTorch: epsilon 1e-10 for Adagrad, else 1e-8; weight
// decay 0.01 for AdamW, else 0. OptimizerOf (optimizer_of.h) takes all of the job's settings.
absl::StatusOr<Optimizer> MakeOptimizer(std::string_view name, double learning_rate);

// The ratio of bytes of (weights + gradient + state) to bytes of weights: 2 for SGD, 3 for Adagrad, momentum and
// RMSprop, 4 for Adam, AdamW, FTRL and RMSprop with momentum.
double StateFactor(OptimizerKind kind);
// Floats of optimizer state for each weight: 0 for SGD, 1 or 2 for others: StateFactor - 2.
size_t StateFloats(OptimizerKind kind);
// Floats of an embedding row with `columns` weights in parameter servers and checkpoints: the weights, then the state.
size_t RowFloats(OptimizerKind kind, size_t columns);
// Whether a row of a checkpoint may have this many floats. Rows of SGD had room for an unused state until decision 80.
bool IsRowWidth(OptimizerKind kind, size_t columns, size_t floats);

// Updates `weights` and `state` in place. `state` has StateFloats() times the length of the other spans: for Adam all
// first moments, then all second moments; RMSprop: mean squares, then momenta; FTRL: all n, then all z. SGD without
// momentum ignores `state`.
void Apply(const Optimizer& optimizer, std::span<float> weights, std::span<float> state,
           std::span<const float> gradient);

// The same, but writes the new values to other spans, so that the old ones remain for an undo. SGD copies a state that
// is not empty. Old and new spans may not overlap.
void ApplyTo(const Optimizer& optimizer, std::span<const float> weights, std::span<const float> state,
             std::span<const float> gradient, std::span<float> new_weights, std::span<float> new_state);

}  // namespace medley::worker
