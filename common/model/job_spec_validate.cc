#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "common/base/status.h"
#include "common/model/input_validate.h"
#include "common/model/job_bounds.h"
#include "common/model/job_spec.h"
#include "common/model/layer_kinds.h"
#include "common/model/program_validate.h"
#include "common/model/task_validate.h"

namespace medley::model {
namespace {

// A Dropout belongs to the layer before it.
absl::Status ValidateDropout(const std::vector<LayerSpec>& layers, size_t i, const std::string& path) {
  const LayerSpec& layer = layers[i];
  if (layer.kind != "Dropout") return absl::OkStatus();
  if (i == 0 || (layers[i - 1].kind != "Embedding" && layers[i - 1].kind != "FullyConnected")) {
    return base::InvalidArgument("{}.kind: a Dropout must follow an Embedding or a FullyConnected layer", path);
  }
  if (i + 1 < layers.size() && layers[i + 1].kind != "Loss") return absl::OkStatus();
  return base::InvalidArgument("{}.kind: a Dropout cannot be the last layer before the Loss", path);
}

absl::Status ValidateLayers(const ModelSpec& model, const SchemaSpec& schema) {
  const std::vector<LayerSpec>& layers = model.layers;
  for (size_t i = 0; i < layers.size(); ++i) {
    MEDLEY_RETURN_IF_ERROR(ValidateDropout(layers, i, fmt::format("spec.model.layers[{}]", i)));
  }
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<ResolvedLayer> resolved, ResolveLayers(model, schema));
  const std::vector<int>& taken = resolved.back().inputs;
  const auto before = taken.empty() ? layers.size() : static_cast<size_t>(taken.front());
  return ValidateOutputs(fmt::format("spec.model.layers[{}]", layers.size() - 1),
                         taken.empty() ? nullptr : &layers[before], taken.empty() ? 0 : resolved[before].width,
                         layers.back().negatives, schema);
}

// Whether two hidden layers that a residual model would add have the same width: 1 and 3, 3 and 5, ...
bool HasConnection(const std::vector<int>& hidden) {
  for (size_t i = 2; i < hidden.size(); i += 2) {
    if (hidden[i] == hidden[i - 2]) return true;
  }
  return false;
}

absl::Status ValidateModel(const ModelSpec& model, const SchemaSpec& schema) {
  if (!model.layers.empty()) return ValidateLayers(model, schema);
  if (model.name == "residual" && !HasConnection(model.hidden)) {
    return base::InvalidArgument(
        "spec.model.parameters.hidden: a residual model adds the outputs of the hidden layers 1 and 3, 3 and 5, ...; "
        "no two of these are equally wide");
  }
  // Ids are categorical columns, and numeric ones that are bucketed.
  const size_t ids = schema.categorical.size() + (schema.numeric_buckets > 0 ? schema.numeric.size() : 0);
  if (model.name == "two-tower" && ids < 2) {
    return base::InvalidArgument(
        "spec.model.name: two-tower needs two or more categorical or bucketed numeric columns in spec.data.schema, "
        "because each tower has its own");
  }
  return absl::OkStatus();
}

// No column is used twice, also by a range, and there are not too many.
absl::Status ValidateSchema(const SchemaSpec& schema) {
  std::set<int> used;
  std::set<std::string> used_names;
  // `names` is empty or has the name of column i, if it is named.
  const auto use = [&](const std::string& path, int column, const std::vector<std::string>& names,
                       size_t i) -> absl::Status {
    if (!names.empty() && !names[i].empty()) {
      if (used_names.insert(names[i]).second) return absl::OkStatus();
      return base::InvalidArgument("{}: column '{}' is used twice in the schema", path, names[i]);
    }
    MEDLEY_RETURN_IF_ERROR(CheckColumn(path, column));
    if (used.insert(column).second) return absl::OkStatus();
    return base::InvalidArgument("{}: column {} is used twice in the schema", path, column);
  };
  if (schema.task != Task::kMultiLabel && schema.task != Task::kOwnLoss) {
    MEDLEY_RETURN_IF_ERROR(use("spec.data.schema.label.column", schema.label_column, {schema.names.label}, 0));
  }
  if (schema.weight_column != -1 || !schema.names.weight.empty()) {
    MEDLEY_RETURN_IF_ERROR(use("spec.data.weight", schema.weight_column, {schema.names.weight}, 0));
  }
  for (size_t i = 0; i < schema.label_columns.size(); ++i) {
    MEDLEY_RETURN_IF_ERROR(
        use(fmt::format("spec.data.schema.label.columns[{}]", i), schema.label_columns[i], schema.names.labels, i));
  }
  for (size_t i = 0; i < schema.categorical.size(); ++i) {
    MEDLEY_RETURN_IF_ERROR(
        use(fmt::format("spec.data.schema.categorical[{}]", i), schema.categorical[i], schema.names.categorical, i));
  }
  for (size_t i = 0; i < schema.numeric.size(); ++i) {
    if (PartOf(schema, i) > ColumnPart::kTime) continue;  // another part of the date before
    MEDLEY_RETURN_IF_ERROR(
        use(fmt::format("spec.data.schema.numeric[{}]", i), schema.numeric[i], schema.names.numeric, i));
  }
  if (schema.categorical.size() > kMostColumns || schema.numeric.size() > kMostColumns) {
    return base::InvalidArgument("spec.data.schema: {} categorical and {} numeric columns; at most {} of each",
                                 schema.categorical.size(), schema.numeric.size(), kMostColumns);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Validate(const JobSpec& spec) {
  if (spec.program) return ValidateProgram(*spec.program);
  MEDLEY_RETURN_IF_ERROR(ValidateTask(spec));
  MEDLEY_RETURN_IF_ERROR(ValidateModel(spec.model, spec.data.schema));
  MEDLEY_RETURN_IF_ERROR(ValidateInputs(spec));
  return spec.data.train.arrays() ? absl::OkStatus() : ValidateSchema(spec.data.schema);
}

}  // namespace medley::model
