#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "common/base/status.h"
#include "common/model/data_format.h"
#include "common/model/field_rules.h"
#include "common/model/job_spec.h"
#include "common/model/task_validate.h"

namespace medley::model {
namespace {

absl::Status ValidateClasses(const SchemaSpec& schema) {
  const std::string path = "spec.data.schema.label.classes";
  if (schema.label_classes.empty()) return absl::OkStatus();
  if (schema.task != Task::kMultiClass) {
    return base::InvalidArgument("{}: go with spec.model.task multiClass, and not with {}", path,
                                 TaskName(schema.task));
  }
  MEDLEY_RETURN_IF_ERROR(ItemsInBounds(path, schema.label_classes.size()));
  std::set<std::string> names;
  for (const std::string& name : schema.label_classes) {
    if (!names.insert(name).second) return base::InvalidArgument("{}: '{}' is named twice", path, name);
  }
  return absl::OkStatus();
}

absl::Status ValidateLabel(const SchemaSpec& schema, bool arrays) {
  if (schema.label_log && (schema.task != Task::kRegression || arrays)) {
    return base::InvalidArgument(
        "spec.data.schema.label.transform: Log1p goes with spec.model.task regression and the formats {}",
        TableFormats());
  }
  if (arrays && (schema.weight_column >= 0 || !schema.names.weight.empty())) {
    return base::InvalidArgument("spec.data.weight: goes with the formats {}", TableFormats());
  }
  if (arrays) return ValidateClasses(schema);
  if (schema.task == Task::kOwnLoss && (schema.label_column >= 0 || !schema.names.label.empty())) {
    return base::InvalidArgument(
        "spec.data.schema.label: spec.model.task ownLoss has no label; make its column one of spec.data.inputs");
  }
  const bool several = schema.task == Task::kMultiLabel;
  if (several && (schema.label_columns.empty() || schema.label_column >= 0)) {
    return base::InvalidArgument(
        "spec.data.schema.label: spec.model.task multiLabel needs columns, the list of its 0/1 columns, and not "
        "column");
  }
  if (!several && !schema.label_columns.empty()) {
    return base::InvalidArgument("spec.data.schema.label.columns: go with spec.model.task multiLabel, and not with {}",
                                 TaskName(schema.task));
  }
  if (!schema.label_columns.empty()) {
    MEDLEY_RETURN_IF_ERROR(ItemsInBounds("spec.data.schema.label.columns", schema.label_columns.size()));
  }
  if (!schema.label_positive.empty() && schema.task != Task::kBinary) {
    return base::InvalidArgument("spec.data.schema.label.positive: goes with spec.model.task binary, and not with {}",
                                 TaskName(schema.task));
  }
  return ValidateClasses(schema);
}

absl::Status ValidateLoss(const ModelSpec& model, Task task) {
  if (model.loss.empty()) return absl::OkStatus();
  if (task != Task::kRegression) {
    return base::InvalidArgument("spec.model.loss: goes with spec.model.task regression, and not with {}",
                                 TaskName(task));
  }
  return OneOf("spec.model.loss", model.loss);
}

bool IsClass(const SchemaSpec& schema, const std::string& name) {
  if (schema.task == Task::kBinary) return name == "0" || name == "1";
  const std::vector<std::string>& classes = schema.label_classes;  // none: checked against the training data
  return classes.empty() || std::ranges::find(classes, name) != classes.end();
}

absl::Status ValidateWeights(const ClassWeightsSpec& spec, const SchemaSpec& schema) {
  const std::string path = "spec.training.classWeights";
  if (schema.task != Task::kBinary && schema.task != Task::kMultiClass) {
    return base::InvalidArgument("{}: go with spec.model.task binary and multiClass, and not with {}", path,
                                 TaskName(schema.task));
  }
  if (spec.balanced != spec.weights.empty()) {
    return base::InvalidArgument("{}: needs exactly one of balanced: true and weights", path);
  }
  for (const auto& [name, weight] : spec.weights) {
    const double most = Most(path + ".weights{}");
    if (!(weight >= 0) || weight > most) {
      return base::InvalidArgument("{}.weights: {} of '{}' is not between 0 and {}", path, weight, name, most);
    }
    if (IsClass(schema, name)) continue;
    if (schema.task == Task::kBinary) {
      return base::InvalidArgument("{}.weights: the classes of spec.model.task binary are \"0\" and \"1\", not '{}'",
                                   path, name);
    }
    return base::InvalidArgument("{}.weights: '{}' is not one of spec.data.schema.label.classes", path, name);
  }
  return absl::OkStatus();
}

}  // namespace

int OutputsOf(const SchemaSpec& schema) {
  if (schema.task == Task::kMultiClass) return static_cast<int>(schema.label_classes.size());
  if (schema.task == Task::kMultiLabel && !schema.label_columns.empty()) {
    return static_cast<int>(schema.label_columns.size());
  }
  return schema.label_count;
}

absl::Status ValidateTask(const JobSpec& spec) {
  const SchemaSpec& schema = spec.data.schema;
  MEDLEY_RETURN_IF_ERROR(ValidateLabel(schema, spec.data.train.arrays()));
  MEDLEY_RETURN_IF_ERROR(ValidateLoss(spec.model, schema.task));
  if (spec.model.name == "logistic" && OutputsOf(schema) == 0) {
    return base::InvalidArgument(
        "spec.model.name: logistic needs spec.data.schema.label.classes for spec.model.task multiClass, because its "
        "table has a column for each class");
  }
  if (!spec.training.class_weights) return absl::OkStatus();
  return ValidateWeights(*spec.training.class_weights, schema);
}

absl::Status ValidateOutputs(const std::string& path, const LayerSpec* before, int64_t width, int negatives,
                             const SchemaSpec& schema) {
  const bool reads = before == nullptr || before->kind == "Embedding" || before->kind == "Numerics";
  const bool linear = !reads && before->activation.empty();
  const int outputs = OutputsOf(schema);
  if (negatives > 0) {
    if (schema.task != Task::kBinary) {
      return base::InvalidArgument("{}.negatives: go with spec.model.task binary, and not with {}", path,
                                   TaskName(schema.task));
    }
    if (linear && width == 1 + negatives) return absl::OkStatus();
    return base::InvalidArgument(
        "{}.negatives: the Loss takes a logit for the sample and one for each of {} drawn rows, but '{}' gives {}",
        path, negatives, before == nullptr ? "" : before->name, width);
  }
  if (linear && (outputs == 0 ? width >= 2 : width == outputs)) return absl::OkStatus();
  if (linear && before->kind != "FullyConnected") {
    return base::InvalidArgument("{}: the Loss of spec.model.task {} takes {}, but '{}' gives {}", path,
                                 TaskName(schema.task),
                                 outputs == 0   ? "a logit for each class"
                                 : outputs == 1 ? "one number"
                                                : fmt::format("{} numbers", outputs),
                                 before->name, width);
  }
  if (outputs == 1) {
    return base::InvalidArgument(
        "{}: the Loss takes one logit: the layer before must be FullyConnected with out 1 and no activation", path);
  }
  return base::InvalidArgument(
      "{}: the Loss of spec.model.task {} takes {}: the layer before must be FullyConnected with out {} and no "
      "activation",
      path, TaskName(schema.task),
      schema.task == Task::kMultiClass ? "a logit for each class" : "a logit for each label",
      outputs == 0 ? "= the number of classes" : std::to_string(outputs));
}

absl::Status ValidateMetric(const std::string& path, const std::string& metric, Task task) {
  const std::vector<std::string> known = TaskMetrics(task);
  if (std::ranges::find(known, metric) != known.end()) return absl::OkStatus();
  const std::string of =
      task == Task::kBinary ? "" : fmt::format(", the metrics of spec.model.task {}", TaskName(task));
  return base::InvalidArgument("{}: '{}' is not one of {}{}", path, metric, fmt::join(known, ", "), of);
}

std::string SelectionMetric(const JobSpec& spec) {
  const TrainingSpec& training = spec.training;
  if (training.evaluation && !training.evaluation->metric.empty()) return training.evaluation->metric;
  return training.early_stopping ? training.early_stopping->metric : DefaultMetric(spec.data.schema.task);
}

}  // namespace medley::model
