#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "common/base/status.h"
#include "common/model/job_spec.h"
#include "common/model/task_validate.h"

namespace medley::model {
namespace {

absl::Status ValidateClasses(const SchemaSpec& schema) {
  std::set<std::string> names;
  for (const std::string& name : schema.label_classes) {
    if (names.insert(name).second) continue;
    return base::InvalidArgument("spec.data.schema.label.classes: '{}' is named twice", name);
  }
  return absl::OkStatus();
}

bool IsClass(const SchemaSpec& schema, const std::string& name) {
  if (schema.task == Task::kBinary) return name == "0" || name == "1";
  const std::vector<std::string>& classes = schema.label_classes;  // none: checked against the training data
  return classes.empty() || std::ranges::find(classes, name) != classes.end();
}

absl::Status ValidateWeights(const ClassWeightsSpec& spec, const SchemaSpec& schema) {
  const std::string path = "spec.training.classWeights";
  for (const auto& [name, weight] : spec.weights) {
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
  MEDLEY_RETURN_IF_ERROR(ValidateClasses(schema));
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

std::string SelectionMetric(const JobSpec& spec) {
  const TrainingSpec& training = spec.training;
  if (training.evaluation && !training.evaluation->metric.empty()) return training.evaluation->metric;
  return training.early_stopping ? training.early_stopping->metric : DefaultMetric(spec.data.schema.task);
}

}  // namespace medley::model
