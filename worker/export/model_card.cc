#include "worker/export/model_card.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "common/base/utf8.h"
#include "common/model/task.h"
#include "worker/data/columns.h"
#include "worker/data/schema.h"

namespace medley::worker {
namespace {

// Text of users in a line of a table: a line break or a bar would end the cell.
std::string Cell(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  std::ranges::replace(text, '|', '/');
  return text;
}

std::string Row(std::string_view name, const std::string& value) {
  return fmt::format("| {} | {} |\n", name, Cell(value));
}

std::string MetricRows(const std::map<std::string, double>& metrics) {
  std::string text = "| metric | value |\n|---|---|\n";
  for (const auto& [name, value] : metrics) {
    text += Row(name, model::IsSampleCount(name) ? fmt::format("{:.0f}", value) : fmt::format("{:.4f}", value));
  }
  return text;
}

std::string Metrics(const ModelCard& card) {
  const std::string chosen = card.chosen.empty() ? "" : card.chosen + "\n\n";
  if (card.metrics.empty()) return chosen + "The job had no test data, so the quality of this model is unknown.\n";
  const bool validation = card.metrics.contains("validation_samples");
  std::string text = chosen + fmt::format("This model on the {} data{}:\n\n", validation ? "validation" : "test",
                                          validation ? ", which chose it; the job had no test data" : "");
  text += MetricRows(card.metrics);
  if (card.chosen_by.empty()) return text;
  return text + "\nOn the validation data, which chose it:\n\n" + MetricRows(card.chosen_by);
}

std::string Layers(const ExportedModel& model) {
  std::string text = "| tensor | shape |\n|---|---|\n";
  for (const ExportedTensor& tensor : TensorsOf(model.graph)) {
    std::string shape;
    for (const int64_t size : tensor.shape) shape += (shape.empty() ? "" : " x ") + std::to_string(size);
    text += Row(tensor.name, shape);
  }
  return text;
}

const char* TaskText(model::Task task) {
  switch (task) {
    case model::Task::kRegression:
      return "regression";
    case model::Task::kMultiClass:
      return "classification into several classes";
    case model::Task::kMultiLabel:
      return "several binary labels";
    case model::Task::kOwnLoss:
      return "what the model's own loss asks for";
    case model::Task::kBinary:
      break;
  }
  return "binary classification";
}

std::string LineText(model::Task task) {
  switch (task) {
    case model::Task::kRegression:
      return "Each line of the result is the predicted number.";
    case model::Task::kMultiClass:
      return "Each line of the result is the most probable class and its probability; with `--all` the probabilities "
             "of all classes, in the order of `classes` in `model.json`.";
    case model::Task::kMultiLabel:
      return "Each line of the result has the probability of 1 in each label column, in the order of the columns.";
    case model::Task::kOwnLoss:
    case model::Task::kBinary:
      break;
  }
  return "Each line of the result is the probability of label 1.";
}

std::string WeightsText(const model::ClassWeightsSpec& spec) {
  if (spec.balanced) return "balanced";
  std::string text;
  for (const auto& [name, weight] : spec.weights)
    text += fmt::format("{}`{}`: {:g}", text.empty() ? "" : ", ", name, weight);
  return text;
}

std::string LabelCell(const ExportedModel& model) {
  const model::SchemaSpec& schema = model.schema;
  const LabelTransform& label = model.transform.label;
  if (!schema.inputs.empty() && schema.categorical.empty() && schema.numeric.empty()) {
    return label.classes.empty() ? "a file" : fmt::format("a file; {} classes", label.classes.size());
  }
  switch (schema.task) {
    case model::Task::kRegression:
      return fmt::format("column {}; {}mean {:g}, deviation {:g}", LabelColumnText(schema),
                         label.log ? "of log(1 + label): " : "", label.mean, label.deviation);
    case model::Task::kMultiClass: {
      constexpr size_t kMostNamed = 20;
      const size_t named = std::min(kMostNamed, label.classes.size());
      std::string text = fmt::format("column {}; {} classes:", LabelColumnText(schema), label.classes.size());
      for (size_t i = 0; i < named; ++i)
        text += fmt::format("{} `{}`", i == 0 ? "" : ",", base::EscapeInvalidUtf8(label.classes[i]));
      return named < label.classes.size() ? text + ", ..." : text;
    }
    case model::Task::kMultiLabel:
      return fmt::format("columns {}", fmt::join(schema.label_columns, ", "));
    case model::Task::kOwnLoss:
      return "none";
    case model::Task::kBinary:
      break;
  }
  return fmt::format("column {}; 1 means `{}`", LabelColumnText(schema),
                     schema.label_positive.empty() ? "1" : schema.label_positive);
}

// The model was exported from PyTorch.
bool Imported(const ExportedModel& model) { return model.graph.operations.front().kind == OperationKind::kImported; }

std::string ImportedText() {
  return fmt::format(
      "## Use\n\nThe tensors have the names of the model's own `state_dict`, so the code that exported it loads "
      "them:\n\n"
      "```python\nfrom safetensors.torch import load_file\n\nmodel.load_state_dict(load_file(\"{}\"), strict=False)\n"
      "model.eval()\n```\n\n`strict=False` because parameters that are one tensor are stored once, under the first of "
      "their "
      "names, and buffers that training does not change are not stored. `medley predict`, `medley evaluate` and "
      "`medley onnx` take this folder: `{}` is the program that computes the model, with its weights before the "
      "training.\n\n",
      kWeightsFile, kProgramFile);
}

std::string FeaturesCell(const model::SchemaSpec& schema) {
  if (schema.inputs.empty()) {
    return fmt::format("{} categorical and {} numeric columns", schema.categorical.size(), schema.numeric.size());
  }
  std::string text;
  for (const model::InputSpec& input : schema.inputs) {
    text +=
        fmt::format("{}`{}`: {} [{}]", text.empty() ? "" : ", ", input.name, input.type, fmt::join(input.shape, " x "));
  }
  return text;
}

// All that does not depend on how the model is used.
std::string Rest(const ModelCard& card, const ExportedModel& model) {
  const model::TrainingSpec& training = card.spec.training;
  std::string text;
  text += "## Data\n\n| | |\n|---|---|\n";
  text += Row("training data", fmt::format("{}, {} rows", card.spec.data.train.uri, card.rows));
  text += Row("rows left out, because they could not be parsed", std::to_string(card.bad_rows));
  if (const auto& validation = card.spec.data.validation) {
    text += Row("validation data", validation->fraction > 0
                                       ? fmt::format("a fraction of {} of the rows of the training data, by seed {}",
                                                     validation->fraction, validation->seed)
                                       : validation->source.uri);
  }
  if (card.spec.data.test) text += Row("test data", card.spec.data.test->uri);
  text += Row("label", LabelCell(model));
  if (HasWeights(model.schema)) text += Row("weights of rows", "column " + WeightColumnText(model.schema));
  text += Row("features", FeaturesCell(model.schema));
  text += "\n## Quality\n\n" + Metrics(card);
  text += "\n## Training\n\n| | |\n|---|---|\n";
  text += Row("epochs", std::to_string(training.epochs));
  text += Row("steps", fmt::format("{} of {} samples", card.origin.step, training.batch_size));
  if (training.class_weights) text += Row("weights of classes", WeightsText(*training.class_weights));
  text += Row("optimizer", fmt::format("{}, learning rate {}", training.optimizer, training.learning_rate));
  if (training.beta1) text += Row("beta1", fmt::format("{}", *training.beta1));
  if (training.beta2) text += Row("beta2", fmt::format("{}", *training.beta2));
  if (training.momentum) {
    text += Row("momentum", fmt::format("{}{}", *training.momentum, training.nesterov ? ", Nesterov's" : ""));
  }
  if (training.beta) text += Row("beta", fmt::format("{}", *training.beta));
  if (training.l1) text += Row("L1 regularisation", fmt::format("{}", *training.l1));
  if (training.l2) text += Row("L2 regularisation", fmt::format("{}", *training.l2));
  if (training.weight_decay) text += Row("weight decay", fmt::format("{}", *training.weight_decay));
  if (training.row_decay) text += Row("weight decay of rows", fmt::format("{}", *training.row_decay));
  if (training.epsilon) text += Row("epsilon", fmt::format("{}", *training.epsilon));
  const auto& rows = training.embeddings;
  if (rows && (rows->admit_after > 1 || rows->evict_after > 0 || rows->decay_steps > 0)) {
    text += Row("rows of embedding tables",
                fmt::format("from {} sightings{}{}", rows->admit_after,
                            rows->evict_after > 0 ? fmt::format(", to {} steps without one", rows->evict_after) : "",
                            rows->decay_steps > 0 ? fmt::format(", halved every {} steps", rows->decay_steps) : ""));
  }
  text += Row("seed", std::to_string(training.seed));
  text += Row("cost", fmt::format("{:.4f} USD for the units of trainers and parameter servers", card.usd));
  text += Row("finished", card.finished);
  text += Row("job", fmt::format("{}, uid {}", card.origin.job, card.origin.job_uid));
  text += Row("Medley", card.origin.medley_version);
  text += "\nThe plan at the end:\n\n";
  for (const std::string& line : card.plan) text += "- " + Cell(line) + "\n";
  text += "\n## Files\n\n| file | content |\n|---|---|\n";
  text += Row(kModelFile, "the layers, in the order of computation");
  text += Row(kSchemaFile, "the columns, the fitted transforms of numbers, and how categorical values are hashed");
  text += Row(kWeightsFile, "all weights (safetensors, float32)");
  text += Row(fmt::format("{}/", kNumpyFolder), "the same weights, one NumPy file for each tensor");
  if (card.has_log) text += Row(kLogFile, "the log of the training: evaluations, changes of plan, faults");
  text += "\n" + Layers(model);
  return text;
}

}  // namespace

std::string Markdown(const ModelCard& card, const ExportedModel& model) {
  std::string text = fmt::format("# {}\n\nA model that Medley trained: `{}`, {}.\n\n", card.origin.job,
                                 model.graph.name, TaskText(model.schema.task));
  if (Imported(model)) return text + ImportedText() + Rest(card, model);
  text +=
      "## Use\n\n```sh\nmedley predict FOLDER DATA.csv -o predictions.txt\nmedley evaluate FOLDER DATA.csv\n```\n\n";
  text +=
      "`FOLDER` is the folder of this file. `DATA.csv` has the columns of the training data; the label may be absent "
      "if it is the last column, or if the job named its columns. " +
      LineText(model.schema.task) + "\n\n";
  return text + Rest(card, model);
}

}  // namespace medley::worker
