#include "common/model/task.h"

#include <algorithm>
#include <array>

namespace medley::model {
namespace {

constexpr std::array kTasks = {Task::kBinary, Task::kRegression, Task::kMultiClass, Task::kMultiLabel, Task::kOwnLoss};

}  // namespace

const char* TaskName(Task task) {
  switch (task) {
    case Task::kBinary:
      break;
    case Task::kRegression:
      return "regression";
    case Task::kMultiClass:
      return "multiClass";
    case Task::kMultiLabel:
      return "multiLabel";
    case Task::kOwnLoss:
      return "ownLoss";
  }
  return "binary";
}

std::optional<Task> TaskNamed(std::string_view name) {
  for (const Task task : kTasks) {
    if (name == TaskName(task)) return task;
  }
  return std::nullopt;
}

std::vector<std::string> TaskMetrics(Task task) {
  if (task == Task::kRegression) return {"mse", "rmse", "mae", "r2"};
  if (task == Task::kOwnLoss) return {"loss"};
  std::vector<std::string> metrics = {"auc", "prAuc", "logLoss", "accuracy"};
  if (task == Task::kBinary) metrics.insert(metrics.end(), {"f1", "balancedAccuracy", "calibrationError"});
  // The last one of more than five classes.
  if (task == Task::kMultiClass) metrics.insert(metrics.end(), {"f1", "balancedAccuracy", "top5Accuracy"});
  return metrics;
}

std::string DefaultMetric(Task task) {
  switch (task) {
    case Task::kRegression:
      return "mse";
    case Task::kMultiClass:
      return "logLoss";
    case Task::kOwnLoss:
      return "loss";
    case Task::kBinary:
    case Task::kMultiLabel:
      break;
  }
  return "auc";  // which weights of classes do not shift
}

std::string MetricKey(std::string_view name) { return name == "log_loss" ? "logLoss" : std::string(name); }

bool IsSampleCount(std::string_view key) { return key == "test_samples" || key == "validation_samples"; }

bool ImprovesByFalling(std::string_view key) {
  constexpr std::array<std::string_view, 6> kFalling = {"logLoss", "mse", "rmse", "mae", "loss", "calibrationError"};
  return std::ranges::find(kFalling, key) != kFalling.end();
}

}  // namespace medley::model
