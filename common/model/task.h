// What a model predicts, which decides how labels are read, which loss is trained and which metrics are computed.
// Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace medley::model {

enum class Task {
  kBinary,      // one of two classes; one logit
  kRegression,  // a number
  kMultiClass,  // one of several classes; a logit for each
  kMultiLabel,  // several independent binary labels; a logit for each
  kOwnLoss      // the model's output is the loss of the sample; there are no labels
};

// As in manifests: binary, regression, multiClass, multiLabel, ownLoss.
const char* TaskName(Task task);
std::optional<Task> TaskNamed(std::string_view name);

// The metrics of an evaluation, by their names in manifests: auc, logLoss, accuracy or mse, mae, r2 or loss.
std::vector<std::string> TaskMetrics(Task task);
// The metric that chooses the best model when a job names none: as above.
std::string DefaultMetric(Task task);
// The one spelling of a metric, in manifests, in the status, in metrics and in files. `name`: that, or how earlier
// versions wrote it (log_loss for logLoss).
std::string MetricKey(std::string_view name);
// Whether the entry of a metrics map is a number of samples, not a quality: test_samples, validation_samples.
bool IsSampleCount(std::string_view key);
// True for losses and errors. `key` is a name in the status.
bool ImprovesByFalling(std::string_view key);

}  // namespace medley::model
