#include "worker/params/optimizer_of.h"

#include "common/base/status.h"

namespace medley::worker {

absl::StatusOr<Optimizer> OptimizerOf(const model::TrainingSpec& training) {
  MEDLEY_ASSIGN_OR_RETURN(Optimizer optimizer, MakeOptimizer(training.optimizer, training.learning_rate));
  if (training.beta1) optimizer.beta1 = *training.beta1;
  if (training.beta2) optimizer.beta2 = *training.beta2;
  if (training.clip_norm) optimizer.clip_norm = static_cast<float>(*training.clip_norm);
  if (training.initial_accumulator) optimizer.initial_state = static_cast<float>(*training.initial_accumulator);
  if (training.alpha) optimizer.alpha = *training.alpha;
  if (training.momentum.value_or(0) > 0) {
    optimizer.kind =
        optimizer.kind == OptimizerKind::kRmsprop ? OptimizerKind::kRmspropMomentum : OptimizerKind::kMomentum;
    optimizer.momentum = static_cast<float>(*training.momentum);
    optimizer.nesterov = training.nesterov;
  }
  if (training.beta) optimizer.ftrl_beta = static_cast<float>(*training.beta);
  if (training.l1) optimizer.l1 = static_cast<float>(*training.l1);
  if (training.l2) optimizer.l2 = static_cast<float>(*training.l2);
  if (training.weight_decay) optimizer.weight_decay = static_cast<float>(*training.weight_decay);
  if (training.row_decay) optimizer.row_decay = static_cast<float>(*training.row_decay);
  if (training.epsilon) optimizer.epsilon = static_cast<float>(*training.epsilon);
  if (training.embeddings) {
    const model::EmbeddingsSpec& rows = *training.embeddings;
    optimizer.lifetime = {rows.admit_after, rows.evict_after, rows.decay_steps};
  }
  if (!training.schedule) return optimizer;
  const model::ScheduleSpec& spec = *training.schedule;
  RateSchedule& schedule = optimizer.schedule;
  schedule.warmup_steps = spec.warmup_steps;
  if (spec.kind == "step") schedule.curve = RateCurve::kStep;
  if (spec.kind == "cosine") schedule.curve = RateCurve::kCosine;
  schedule.every_steps = spec.every_steps;
  schedule.factor = spec.factor;
  schedule.steps = spec.steps;
  schedule.final_factor = spec.final_factor;
  return optimizer;
}

}  // namespace medley::worker
