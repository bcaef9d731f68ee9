// How the learning rate changes from step to step. A pure function of the step's number, so a restart, a recovery and a
// change of plan change nothing, and trainers and parameter servers agree without messages. Immutable values.
//
// With u = step - 1 - warmup_steps, the updates since the warm-up:
//   warm-up (step <= warmup_steps)  step / warmup_steps
//   constant                        1
//   step                            factor ^ floor(u / every_steps)                                (torch.optim StepLR)
//   cosine                          final + (1 - final) (1 + cos(pi min(u, steps) / steps)) / 2     (CosineAnnealingLR)
#pragma once

#include <cstdint>

namespace medley::worker {

enum class RateCurve { kConstant, kStep, kCosine };

struct RateSchedule {
  RateCurve curve = RateCurve::kConstant;
  int64_t warmup_steps = 0;  // >= 0
  int64_t every_steps = 1;   // kStep: >= 1
  double factor = 1;         // kStep: in [0, 1]
  int64_t steps = 1;         // kCosine: >= 1, from the end of the warm-up until the rate is lowest
  double final_factor = 0;   // kCosine: in [0, 1], the lowest rate as a part of the learning rate

  bool operator==(const RateSchedule&) const = default;
};

// The factor of the learning rate in `step` >= 1, in [0, 1].
double RateFactor(const RateSchedule& schedule, int64_t step);

}  // namespace medley::worker
