#include "common/model/optimizer_validate.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "common/base/status.h"
#include "common/model/field_rules.h"
#include "common/model/job_spec.h"

namespace medley::model {
namespace {

absl::Status ValidateSchedule(const ScheduleSpec& schedule) {
  const std::string path = "spec.training.optimizer.schedule";
  MEDLEY_RETURN_IF_ERROR(OneOf(path + ".kind", schedule.kind));
  MEDLEY_RETURN_IF_ERROR(InBounds(path + ".warmupSteps", schedule.warmup_steps));
  if (schedule.kind == "step") {
    MEDLEY_RETURN_IF_ERROR(InBounds(path + ".everySteps", schedule.every_steps));
    MEDLEY_RETURN_IF_ERROR(InBounds(path + ".factor", schedule.factor));
  }
  if (schedule.kind == "cosine") {
    MEDLEY_RETURN_IF_ERROR(InBounds(path + ".steps", schedule.steps));
    MEDLEY_RETURN_IF_ERROR(InBounds(path + ".finalFactor", schedule.final_factor));
  }
  return absl::OkStatus();
}

absl::Status ValidateFtrl(const TrainingSpec& training) {
  const std::string path = "spec.training.optimizer";
  for (const auto& [field, value] :
       {std::pair("beta", training.beta), std::pair("l1", training.l1), std::pair("l2", training.l2)}) {
    if (!value) continue;
    if (training.optimizer != "ftrl") return base::InvalidArgument("{}.{}: only ftrl has it", path, field);
    MEDLEY_RETURN_IF_ERROR(InBounds(fmt::format("{}.{}", path, field), *value));
  }
  if (training.schedule && training.optimizer == "ftrl") {
    return base::InvalidArgument("{}.schedule: ftrl does not have it, its weights follow the learning rate", path);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateOptimizer(const TrainingSpec& training) {
  const std::string path = "spec.training.optimizer";
  MEDLEY_RETURN_IF_ERROR(OneOf(path + ".name", training.optimizer));
  if (!(training.learning_rate > 0)) {
    return base::InvalidArgument("{}.learningRate: {} is not above 0", path, training.learning_rate);
  }
  MEDLEY_RETURN_IF_ERROR(InBounds(path + ".learningRate", training.learning_rate));
  for (const auto& [field, beta] : {std::pair("beta1", training.beta1), std::pair("beta2", training.beta2)}) {
    if (!beta) continue;
    if (training.optimizer != "adam" && training.optimizer != "adamw") {
      return base::InvalidArgument("{}.{}: only adam and adamw have it", path, field);
    }
    MEDLEY_RETURN_IF_ERROR(InBounds(fmt::format("{}.{}", path, field), *beta));
  }
  if (training.epsilon) {
    if (training.optimizer == "sgd" || training.optimizer == "ftrl") {
      return base::InvalidArgument("{}.epsilon: {} does not have it", path, training.optimizer);
    }
    if (!(*training.epsilon > 0)) {
      return base::InvalidArgument("{}.epsilon: {} is not above 0", path, *training.epsilon);
    }
    MEDLEY_RETURN_IF_ERROR(InBounds(path + ".epsilon", *training.epsilon));
  }
  if (training.alpha) {
    if (training.optimizer != "rmsprop") return base::InvalidArgument("{}.alpha: only rmsprop has it", path);
    MEDLEY_RETURN_IF_ERROR(InBounds(path + ".alpha", *training.alpha));
  }
  if (training.momentum) {
    if (training.optimizer != "sgd" && training.optimizer != "rmsprop") {
      return base::InvalidArgument("{}.momentum: only sgd and rmsprop have it", path);
    }
    MEDLEY_RETURN_IF_ERROR(InBounds(path + ".momentum", *training.momentum));
  }
  MEDLEY_RETURN_IF_ERROR(ValidateFtrl(training));
  if (training.nesterov && (training.momentum.value_or(0) <= 0 || training.optimizer != "sgd")) {
    return base::InvalidArgument("{}.nesterov: needs sgd with a momentum above 0", path);
  }
  if (training.weight_decay) MEDLEY_RETURN_IF_ERROR(InBounds(path + ".weightDecay", *training.weight_decay));
  if (training.row_decay) MEDLEY_RETURN_IF_ERROR(InBounds(path + ".rowDecay", *training.row_decay));
  return training.schedule ? ValidateSchedule(*training.schedule) : absl::OkStatus();
}

}  // namespace medley::model
