#include "common/model/job_spec.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "common/base/status.h"
#include "common/document/reader.h"
#include "common/model/read_data.h"

namespace medley::model {
namespace {

using document::Reader;

void ReadModel(const Reader& reader, ModelSpec& model) {
  reader.Read("name", model.name);
  reader.Read("loss", model.loss);
  reader.Read("initialFrom", model.initial_from);
  reader.Child("exported").Read("uri", model.exported_uri);
  reader.Child("torchScript").Read("uri", model.torchscript_uri);
  const Reader cut = reader.Child("cut");
  cut.Read("depth", model.cut.depth);
  cut.Read("finest", model.cut.finest);
  model.cut.modules = cut.Strings("modules");
  reader.Read("output", model.output);
  const Reader parameters = reader.Child("parameters");
  parameters.Read("embeddingDim", model.embedding_dim);
  parameters.Read("embeddingRows", model.embedding_rows);
  parameters.Read("hidden", model.hidden);
  parameters.Read("dropout", model.dropout);
  for (const Reader& layer : reader.List("layers")) {
    LayerSpec& spec = model.layers.emplace_back();
    layer.Read("name", spec.name);
    layer.Read("kind", spec.kind);
    layer.Read("out", spec.out);
    layer.Read("activation", spec.activation);
    layer.Read("fraction", spec.fraction);
  }
}

void ReadTask(const Reader& model, Task& task) {
  const std::string name = model.String("task", TaskName(task));
  const std::optional<Task> found = TaskNamed(name);
  if (!found) model.Fail("task", "'" + name + "' is not one of binary, regression, multiClass, multiLabel, ownLoss");
  task = found.value_or(task);
}

void ReadClassWeights(const Reader& reader, ClassWeightsSpec& spec) {
  reader.Read("balanced", spec.balanced);
  const nlohmann::json weights = reader.Raw("weights");
  if (!weights.is_object()) return reader.Fail("weights", "must be an object of numbers");
  for (const auto& [name, weight] : weights.items()) {
    if (!weight.is_number()) return reader.Fail("weights", "the weight of '" + name + "' must be a number");
    spec.weights[name] = weight.get<double>();
  }
}

void ReadTraining(const Reader& reader, TrainingSpec& training) {
  reader.Read("epochs", training.epochs);
  reader.Read("batchSize", training.batch_size);
  reader.Read("microBatches", training.micro_batches);
  const Reader optimizer = reader.Child("optimizer");
  optimizer.Read("name", training.optimizer);
  optimizer.Read("learningRate", training.learning_rate);
  if (optimizer.Has("beta1")) optimizer.Read("beta1", training.beta1.emplace());
  if (optimizer.Has("beta2")) optimizer.Read("beta2", training.beta2.emplace());
  if (optimizer.Has("alpha")) optimizer.Read("alpha", training.alpha.emplace());
  if (optimizer.Has("momentum")) optimizer.Read("momentum", training.momentum.emplace());
  optimizer.Read("nesterov", training.nesterov);
  if (optimizer.Has("weightDecay")) optimizer.Read("weightDecay", training.weight_decay.emplace());
  if (optimizer.Has("rowDecay")) optimizer.Read("rowDecay", training.row_decay.emplace());
  if (optimizer.Has("epsilon")) optimizer.Read("epsilon", training.epsilon.emplace());
  if (optimizer.Has("schedule")) {
    const Reader schedule = optimizer.Child("schedule");
    ScheduleSpec& spec = training.schedule.emplace();
    schedule.Read("kind", spec.kind);
    schedule.Read("warmupSteps", spec.warmup_steps);
    schedule.Read("everySteps", spec.every_steps);
    schedule.Read("factor", spec.factor);
    schedule.Read("steps", spec.steps);
    schedule.Read("finalFactor", spec.final_factor);
  }
  if (reader.Has("clipNorm")) reader.Read("clipNorm", training.clip_norm.emplace());
  reader.Read("precision", training.precision);
  reader.Read("seed", training.seed);
  reader.Read("tensorBoard", training.tensor_board);
  if (reader.Has("evaluation")) {
    const Reader evaluation = reader.Child("evaluation");
    training.evaluation.emplace();
    evaluation.Read("everyEpochs", training.evaluation->every_epochs);
    evaluation.Read("everySteps", training.evaluation->every_steps);
    evaluation.Read("metric", training.evaluation->metric);
  }
  if (reader.Has("earlyStopping")) {
    const Reader stopping = reader.Child("earlyStopping");
    training.early_stopping.emplace();
    stopping.Read("metric", training.early_stopping->metric);
    stopping.Read("patience", training.early_stopping->patience);
    stopping.Read("minDelta", training.early_stopping->min_delta);
  }
  if (reader.Has("classWeights")) ReadClassWeights(reader.Child("classWeights"), training.class_weights.emplace());
}

void ReadCheckpoint(const Reader& reader, CheckpointSpec& checkpoint) {
  checkpoint.interval_seconds = reader.Seconds("interval", checkpoint.interval_seconds);
  reader.Read("keep", checkpoint.keep);
  reader.Child("volume").Read("mountPath", checkpoint.path);
  reader.Read("from", checkpoint.from);
}

}  // namespace

absl::StatusOr<JobSpec> ParseJobSpec(std::string_view text) {
  auto tree = document::ParseJson(text);
  if (!tree.ok()) return base::Annotate(tree.status(), "spec");
  if (!tree->is_object()) return base::InvalidArgument("spec: must be an object");
  JobSpec spec;
  const Reader reader(*tree, "spec");  // which has fields of the operator's too
  ReadModel(reader.Child("model"), spec.model);
  ReadTask(reader.Child("model"), spec.data.schema.task);
  ReadData(reader.Child("data"), spec.data);
  ReadTraining(reader.Child("training"), spec.training);
  ReadCheckpoint(reader.Child("checkpoint"), spec.checkpoint);
  const std::string exported = reader.String("export", "Best");
  if (exported != "Best" && exported != "Last") reader.Fail("export", "'" + exported + "' is not one of Best, Last");
  spec.export_best = exported == "Best";
  MEDLEY_RETURN_IF_ERROR(reader.status());
  return spec;
}

}  // namespace medley::model
