#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "common/base/status.h"
#include "common/model/data_format.h"
#include "common/model/field_rules.h"
#include "common/model/input_validate.h"
#include "common/model/job_spec.h"
#include "common/model/layer_kinds.h"
#include "common/model/optimizer_validate.h"
#include "common/model/program_validate.h"
#include "common/model/task_validate.h"

namespace medley::model {
namespace {

// A Dropout belongs to the layer before it.
absl::Status ValidateDropout(const std::vector<LayerSpec>& layers, size_t i, const std::string& path) {
  const LayerSpec& layer = layers[i];
  if (layer.kind != "Dropout") {
    if (layer.fraction == 0) return absl::OkStatus();
    return base::InvalidArgument("{}.fraction: goes with the kind Dropout, and not with {}", path, layer.kind);
  }
  MEDLEY_RETURN_IF_ERROR(InBounds(path + ".fraction", layer.fraction));
  if (layer.out != 0 || !layer.activation.empty()) {
    return base::InvalidArgument(
        "{}: a Dropout has no out and no activation: its outputs are those of the layer before", path);
  }
  if (i == 0 || (layers[i - 1].kind != "Embedding" && layers[i - 1].kind != "FullyConnected")) {
    return base::InvalidArgument("{}.kind: a Dropout must follow an Embedding or a FullyConnected layer", path);
  }
  if (i + 1 < layers.size() && layers[i + 1].kind != "Loss") return absl::OkStatus();
  return base::InvalidArgument("{}.kind: a Dropout cannot be the last layer before the Loss", path);
}

absl::Status ValidateLayers(const ModelSpec& model, const SchemaSpec& schema) {
  const std::vector<LayerSpec>& layers = model.layers;
  std::set<std::string> names;
  for (size_t i = 0; i < layers.size(); ++i) {
    const LayerSpec& layer = layers[i];
    const std::string path = fmt::format("spec.model.layers[{}]", i);
    MEDLEY_RETURN_IF_ERROR(OneOf(path + ".kind", layer.kind));
    if (layer.name.empty()) return base::InvalidArgument("{}.name: is required", path);
    if (!names.insert(layer.name).second) {
      return base::InvalidArgument("{}.name: '{}' is the name of another layer", path, layer.name);
    }
    MEDLEY_RETURN_IF_ERROR(OneOf(path + ".activation", layer.activation));
    MEDLEY_RETURN_IF_ERROR(ValidateDropout(layers, i, path));
    if ((LayerKindNamed(layer.kind)->fields & kOut) != 0) MEDLEY_RETURN_IF_ERROR(InBounds(path + ".out", layer.out));
    if (layer.dim != 0) MEDLEY_RETURN_IF_ERROR(InBounds(path + ".dim", layer.dim));
    if (layer.fields != 0) MEDLEY_RETURN_IF_ERROR(InBounds(path + ".fields", layer.fields));
    if (layer.negatives != 0) MEDLEY_RETURN_IF_ERROR(InBounds(path + ".negatives", layer.negatives));
    MEDLEY_RETURN_IF_ERROR(InBounds(path + ".first", layer.first));
    if (!layer.combine.empty()) MEDLEY_RETURN_IF_ERROR(OneOf(path + ".combine", layer.combine));
    if ((layer.kind == "Loss") != (i + 1 == layers.size())) {
      return base::InvalidArgument("{}.kind: the last layer must be a Loss, and no other layer may be one", path);
    }
  }
  MEDLEY_RETURN_IF_ERROR(InBounds("spec.model.parameters.embeddingRows", model.embedding_rows));
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

absl::Status ValidateImported(const ModelSpec& model) {
  const bool exported = !model.exported_uri.empty();
  const std::string& uri = exported ? model.exported_uri : model.torchscript_uri;
  if (!IsReadable(uri)) {
    return base::InvalidArgument("spec.model.{}.uri: '{}' does not start with {}",
                                 exported ? "exported" : "torchScript", uri, kReadablePlaces);
  }
  MEDLEY_RETURN_IF_ERROR(InBounds("spec.model.cut.depth", model.cut.depth));
  if (model.cut.finest && !model.cut.modules.empty()) {
    return base::InvalidArgument("spec.model.cut: finest and modules exclude each other");
  }
  return absl::OkStatus();
}

absl::Status ValidateModel(const ModelSpec& model, const SchemaSpec& schema) {
  const std::array sources = {!model.name.empty(), !model.layers.empty(), !model.exported_uri.empty(),
                              !model.torchscript_uri.empty()};
  if (std::ranges::count(sources, true) != 1) {
    return base::InvalidArgument("spec.model: exactly one of name, layers, exported and torchScript must be given");
  }
  const std::string& from = model.initial_from;
  // A web server lists no folder.
  if (!from.empty() && !from.starts_with("/") && (!IsReadable(from) || from.starts_with("https://"))) {
    return base::InvalidArgument(
        "spec.model.initialFrom: '{}' is not an absolute path and does not start with file:///, s3:// or gs://", from);
  }
  MEDLEY_RETURN_IF_ERROR(InBounds("spec.model.parameters.dropout", model.dropout));
  if (model.dropout > 0 && (model.name.empty() || model.name == "logistic")) {
    return base::InvalidArgument(
        "spec.model.parameters.dropout: goes with the hidden layers of ctrdnn, mlp, residual and two-tower; among "
        "spec.model.layers, use layers of the kind Dropout");
  }
  if (model.imported()) return ValidateImported(model);
  if (model.cut.finest || !model.cut.modules.empty() || !model.output.empty()) {
    return base::InvalidArgument("spec.model: cut and output are for models from PyTorch");
  }
  if (schema.task == Task::kOwnLoss) {
    return base::InvalidArgument("spec.model.task: ownLoss is for models from PyTorch");
  }
  if (!model.layers.empty()) return ValidateLayers(model, schema);
  MEDLEY_RETURN_IF_ERROR(OneOf("spec.model.name", model.name));
  MEDLEY_RETURN_IF_ERROR(InBounds("spec.model.parameters.embeddingDim", model.embedding_dim));
  MEDLEY_RETURN_IF_ERROR(InBounds("spec.model.parameters.embeddingRows", model.embedding_rows));
  if (model.hidden.empty() && model.name != "logistic") {
    return base::InvalidArgument("spec.model.parameters.hidden: needs at least one width");
  }
  for (size_t i = 0; i < model.hidden.size(); ++i) {
    MEDLEY_RETURN_IF_ERROR(InBounds(fmt::format("spec.model.parameters.hidden[{}]", i), model.hidden[i]));
  }
  if (model.name == "residual" && !HasConnection(model.hidden)) {
    return base::InvalidArgument(
        "spec.model.parameters.hidden: a residual model adds the outputs of the hidden layers 1 and 3, 3 and 5, ...; "
        "no "
        "two of these are equally wide");
  }
  return absl::OkStatus();
}

absl::Status ValidateSchema(const SchemaSpec& schema) {
  std::set<int> used;
  std::set<std::string> used_names;
  // `names` is empty or has the name of column i, if it is named.
  const auto use = [&](const std::string& path, int column, const std::vector<std::string>& names,
                       size_t i) -> absl::Status {
    if (!names.empty() && !names[i].empty()) {
      if (!schema.header) {
        return base::InvalidArgument("{}: '{}' is a name, which needs spec.data.schema.header: true", path, names[i]);
      }
      if (used_names.insert(names[i]).second) return absl::OkStatus();
      return base::InvalidArgument("{}: column '{}' is used twice in the schema", path, names[i]);
    }
    MEDLEY_RETURN_IF_ERROR(InBounds(path, column));
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
  if (schema.categorical.empty() && schema.numeric.empty()) {
    return base::InvalidArgument("spec.data.schema: needs at least one categorical or numeric column");
  }
  return InBounds("spec.data.schema.numericBuckets", schema.numeric_buckets);
}

// Whether the files of each source have a header follows from some formats.
absl::Status ValidateHeader(const DataSpec& data) {
  std::vector<const SourceSpec*> sources = {&data.train};
  if (data.validation && data.validation->fraction <= 0) sources.push_back(&data.validation->source);
  if (data.test) sources.push_back(&*data.test);
  for (const SourceSpec* source : sources) {
    const DataFormat* const format = DataFormatNamed(source->format);
    if (format == nullptr || format->header == HeaderRule::kEither) continue;
    const bool needed = format->header == HeaderRule::kAlways;
    if (needed == data.schema.header) continue;
    return base::InvalidArgument(
        "spec.data.schema.header: must be {} for the format {}, whose files {} names of columns", needed,
        source->format, needed ? "have" : "have no");
  }
  return absl::OkStatus();
}

// Checks that the data has columns that the model can read.
absl::Status ValidateFit(const ModelSpec& model, const SchemaSpec& schema) {
  if (model.imported()) return absl::OkStatus();  // its inputs are known when the archive has been read
  const size_t ids = schema.categorical.size() + (schema.numeric_buckets > 0 ? schema.numeric.size() : 0);
  const bool fields = ids > 0;
  if (model.name == "two-tower" && ids < 2) {
    return base::InvalidArgument(
        "spec.model.name: two-tower needs two or more categorical or bucketed numeric columns in spec.data.schema, "
        "because each tower has its own");
  }
  if (model.name == "residual") return absl::OkStatus();  // embeds the ids if there are any
  if (!model.layers.empty()) return absl::OkStatus();     // ResolveLayers has checked them
  const bool embeds = model.name != "mlp";
  if (embeds && !fields) {
    return base::InvalidArgument(
        "spec.model: an embedding needs categorical columns or numericBuckets in "
        "spec.data.schema");
  }
  if (!embeds && schema.numeric.empty()) {
    return base::InvalidArgument("spec.model: a model without embedding needs numeric columns in spec.data.schema");
  }
  return absl::OkStatus();
}

bool HasTables(const ModelSpec& model) {
  if (!model.name.empty()) return model.name != "mlp";
  return std::ranges::any_of(model.layers, [](const LayerSpec& layer) { return layer.kind == "Embedding"; });
}

// Rows of embedding tables that a step does not use stay as they are, which these would change.
absl::Status ValidateRows(const JobSpec& spec) {
  const TrainingSpec& training = spec.training;
  const bool has_tables = HasTables(spec.model);
  if (training.row_decay && !has_tables && !spec.model.imported()) {
    return base::InvalidArgument("spec.training.optimizer.rowDecay: needs a model with embedding tables");
  }
  if (training.embeddings) {
    const EmbeddingsSpec& rows = *training.embeddings;
    if (!has_tables || spec.model.imported()) {
      return base::InvalidArgument(
          "spec.training.embeddings: needs a model with embedding tables that is not from PyTorch");
    }
    MEDLEY_RETURN_IF_ERROR(InBounds("spec.training.embeddings.admitAfter", rows.admit_after));
    MEDLEY_RETURN_IF_ERROR(OneOf("spec.training.embeddings.wire", rows.wire));
    for (const auto& [field, steps] :
         {std::pair("evictAfter", rows.evict_after), std::pair("decaySteps", rows.decay_steps)}) {
      if (steps != 0) MEDLEY_RETURN_IF_ERROR(InBounds(fmt::format("spec.training.embeddings.{}", field), steps));
    }
  }
  const bool moves = training.optimizer == "rmsprop" || training.momentum.value_or(0) > 0;
  if (!moves || !has_tables) return absl::OkStatus();
  return base::InvalidArgument(
      "spec.training.optimizer: rmsprop and momentum need a model without embedding tables: mlp, one from PyTorch, or "
      "layers without Embedding");
}

absl::Status ValidateClipping(const JobSpec& spec) {
  const std::optional<double>& norm = spec.training.clip_norm;
  if (!norm) return absl::OkStatus();
  MEDLEY_RETURN_IF_ERROR(InBounds("spec.training.clipNorm", *norm));
  if (!HasTables(spec.model)) return absl::OkStatus();
  return base::InvalidArgument(
      "spec.training.clipNorm: needs a model without embedding tables: mlp, one from PyTorch, or layers without "
      "Embedding");
}

absl::Status ValidateEvaluation(const TrainingSpec& training, Task task) {
  if (training.evaluation) {
    const EvaluationSpec& evaluation = *training.evaluation;
    if ((evaluation.every_epochs == 0) == (evaluation.every_steps == 0)) {
      return base::InvalidArgument("spec.training.evaluation: needs exactly one of everyEpochs and everySteps");
    }
    MEDLEY_RETURN_IF_ERROR(evaluation.every_epochs != 0
                               ? InBounds("spec.training.evaluation.everyEpochs", evaluation.every_epochs)
                               : InBounds("spec.training.evaluation.everySteps", evaluation.every_steps));
    if (!evaluation.metric.empty()) {
      MEDLEY_RETURN_IF_ERROR(ValidateMetric("spec.training.evaluation.metric", evaluation.metric, task));
    }
  }
  if (!training.early_stopping) return absl::OkStatus();
  const EarlyStoppingSpec& stopping = *training.early_stopping;
  if (!training.evaluation) {
    return base::InvalidArgument("spec.training.earlyStopping: needs spec.training.evaluation");
  }
  MEDLEY_RETURN_IF_ERROR(ValidateMetric("spec.training.earlyStopping.metric", stopping.metric, task));
  MEDLEY_RETURN_IF_ERROR(InBounds("spec.training.earlyStopping.patience", stopping.patience));
  return InBounds("spec.training.earlyStopping.minDelta", stopping.min_delta);
}

absl::Status ValidateTraining(const TrainingSpec& training, Task task) {
  MEDLEY_RETURN_IF_ERROR(InBounds("spec.training.epochs", training.epochs));
  MEDLEY_RETURN_IF_ERROR(InBounds("spec.training.batchSize", training.batch_size));
  MEDLEY_RETURN_IF_ERROR(InBounds("spec.training.microBatches", training.micro_batches));
  if (training.micro_batches > training.batch_size) {
    return base::InvalidArgument("spec.training.microBatches: {} is more than batchSize {}", training.micro_batches,
                                 training.batch_size);
  }
  MEDLEY_RETURN_IF_ERROR(ValidateOptimizer(training));
  MEDLEY_RETURN_IF_ERROR(ValidateEvaluation(training, task));
  return OneOf("spec.training.precision", training.precision);
}

absl::Status ValidateCheckpoint(const CheckpointSpec& checkpoint) {
  if (checkpoint.interval_seconds < 1) {
    return base::InvalidArgument("spec.checkpoint.interval: must be at least 1s");
  }
  const auto in_store = [](const std::string& text) { return text.starts_with("s3://") || text.starts_with("gs://"); };
  const std::string& from = checkpoint.from;
  if (!from.empty() && !from.starts_with("/") && !from.starts_with("file:///") && !in_store(from)) {
    return base::InvalidArgument(
        "spec.checkpoint.from: '{}' is not an absolute path and does not start with file:///, s3:// or gs://", from);
  }
  if (!from.empty() && checkpoint.path.empty() && checkpoint.uri.empty()) {
    return base::InvalidArgument("spec.checkpoint.from: needs spec.checkpoint.volume or uri, into which it is copied");
  }
  if (!checkpoint.uri.empty() && !in_store(checkpoint.uri)) {
    return base::InvalidArgument("spec.checkpoint.uri: '{}' does not start with s3:// or gs://", checkpoint.uri);
  }
  return InBounds("spec.checkpoint.keep", checkpoint.keep);
}

}  // namespace

absl::Status Validate(const JobSpec& spec) {
  if (spec.program) {
    MEDLEY_RETURN_IF_ERROR(ValidateProgram(*spec.program));
    return ValidateCheckpoint(spec.checkpoint);
  }
  MEDLEY_RETURN_IF_ERROR(ValidateTask(spec));
  MEDLEY_RETURN_IF_ERROR(ValidateModel(spec.model, spec.data.schema));
  MEDLEY_RETURN_IF_ERROR(ValidateInputs(spec));
  if (!spec.data.train.arrays()) MEDLEY_RETURN_IF_ERROR(ValidateSchema(spec.data.schema));
  MEDLEY_RETURN_IF_ERROR(ValidateHeader(spec.data));
  MEDLEY_RETURN_IF_ERROR(InBounds("spec.data.maxBadRows", spec.data.max_bad_rows));
  if (spec.data.shuffle_window) {
    MEDLEY_RETURN_IF_ERROR(InBounds("spec.data.shuffle.window", *spec.data.shuffle_window));
  }
  MEDLEY_RETURN_IF_ERROR(ValidateFit(spec.model, spec.data.schema));
  MEDLEY_RETURN_IF_ERROR(ValidateTraining(spec.training, spec.data.schema.task));
  if (spec.training.evaluation && !spec.data.test && !spec.data.validation) {
    return base::InvalidArgument("spec.training.evaluation: needs spec.data.validation or spec.data.test");
  }
  MEDLEY_RETURN_IF_ERROR(ValidateRows(spec));
  MEDLEY_RETURN_IF_ERROR(ValidateClipping(spec));
  return ValidateCheckpoint(spec.checkpoint);
}

}  // namespace medley::model
