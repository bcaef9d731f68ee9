#include "worker/export/exported_model.h"

#include <nlohmann/json.hpp>

#include "common/base/hex.h"
#include "common/base/status.h"
#include "common/base/utf8.h"
#include "worker/data/number.h"
#include "worker/data/schema.h"
#include "worker/model/layer_table.h"

namespace medley::worker {
namespace {

using Json = nlohmann::ordered_json;

const char* LossName(LossKind loss) {
  switch (loss) {
    case LossKind::kSquared:
      return "mse";
    case LossKind::kAbsolute:
      return "mae";
    case LossKind::kSoftmax:
      return "crossEntropy";
    case LossKind::kOutput:
      return "output";
    case LossKind::kLogistic:
      break;
  }
  return "logLoss";
}

const char* OutputText(model::Task task) {
  switch (task) {
    case model::Task::kRegression:
      return "the number: mean + deviation x the output of the last FullyConnected layer";
    case model::Task::kMultiClass:
      return "the probability of each of classes: the softmax of the last FullyConnected layer";
    case model::Task::kMultiLabel:
      return "the probability of 1 in each of labelColumns: the sigmoid of the last FullyConnected layer";
    case model::Task::kOwnLoss:
      return "the loss of the sample";
    case model::Task::kBinary:
      break;
  }
  return "the probability of label 1: the sigmoid of the last FullyConnected layer";
}

const char* ProgramOutputText(model::Task task) {
  switch (task) {
    case model::Task::kRegression:
      return "the numbers: mean + deviation x the result of the program";
    case model::Task::kMultiClass:
      return "the probability of each of classes: the softmax of the result of the program";
    case model::Task::kMultiLabel:
      return "the probability of 1 for each label: the sigmoid of the result of the program";
    case model::Task::kOwnLoss:
      return "the loss of the sample: the result of the program";
    case model::Task::kBinary:
      break;
  }
  return "the probability of label 1: the sigmoid of the result of the program";
}

// JSON holds text only. Names in another encoding are written a second time as their bytes, so that predictions and
// labels are those of the data.
void AddNames(const std::vector<std::string>& classes, const char* key, const char* bytes_key, Json& json) {
  Json names = Json::array();
  Json bytes = Json::array();
  bool text = true;
  for (const std::string& name : classes) {
    names.push_back(base::EscapeInvalidUtf8(name));
    bytes.push_back(base::HexOf(name));
    text = text && base::IsUtf8(name);
  }
  json[key] = std::move(names);
  if (!text) json[bytes_key] = std::move(bytes);
}

// What turns the outputs into predictions, for the tasks that need it.
void AddLabel(const ExportedModel& model, Json& json) {
  const LabelTransform& label = model.transform.label;
  if (model.schema.task == model::Task::kRegression) {
    json["label"] = {{"mean", label.mean}, {"deviation", label.deviation}};
    if (label.log) {
      json["label"]["transform"] = "log1p";
      json["output"] = "the number: exp(mean + deviation x the output of the last operation) - 1";
    }
  }
  if (model.schema.task == model::Task::kMultiClass) AddNames(label.classes, "classes", "classBytes", json);
  if (model.schema.task == model::Task::kMultiLabel) json["labelColumns"] = model.schema.label_columns;
}

void AddInputs(const Graph& graph, const Operation& operation, Json& layer) {
  for (const int input : operation.inputs) {
    layer["inputs"].push_back(graph.operations[static_cast<size_t>(input)].name);
  }
}

const char* CombineName(Combine combine) {
  return combine == Combine::kMax ? "max" : combine == Combine::kMean ? "mean" : "sum";
}

// Whether it takes another output than that of the operation before it, which readers of version 1 do not look for.
bool TakesNamed(const Graph& graph, size_t index) {
  const Operation& operation = graph.operations[index];
  const bool chained = operation.kind == OperationKind::kFullyConnected || operation.kind == OperationKind::kLoss;
  return chained && !operation.inputs.empty() && operation.inputs.front() != static_cast<int>(index) - 1;
}

// Fields that only some kinds of layers have.
void AddVectorFields(const Operation& operation, Json& layer) {
  if (operation.dim > 0) layer["dim"] = operation.dim;
  if (operation.first > 0) layer["first"] = operation.first;
  if (operation.kind == OperationKind::kPool) layer["combine"] = CombineName(operation.combine);
}

Json LayerJson(const Graph& graph, size_t index) {
  const Operation& operation = graph.operations[index];
  Json layer = {{"name", operation.name}, {"kind", KindName(operation.kind)}};
  if (TakesNamed(graph, index)) AddInputs(graph, operation, layer);
  switch (operation.kind) {
    case OperationKind::kEmbedding:
      layer["input"] = operation.reads_numerics ? "ids, numerics" : "ids";
      if (const ParameterSpec& table = operation.parameters.front(); table.fields != graph.shape.fields) {
        layer["firstField"] = table.first_field;
        layer["fields"] = table.fields;
      }
      layer["combine"] = operation.sum_fields ? "sum" : "concatenate";
      layer["outputs"] = operation.output_width;
      break;
    case OperationKind::kFullyConnected:
      layer["input"] = operation.reads_numerics ? "numerics" : "previous";
      if (TakesNamed(graph, index)) layer.erase("input");
      layer["outputs"] = operation.output_width;
      layer["activation"] = ActivationName(operation.activation);
      break;
    case OperationKind::kLoss:
      layer["loss"] = LossName(operation.loss);
      break;
    case OperationKind::kImported:
      layer["module"] = operation.module_kind;
      AddInputs(graph, operation, layer);
      layer["outputs"] = operation.output_width;
      break;
    case OperationKind::kNumerics:
      layer["outputs"] = operation.output_width;
      break;
    default:
      AddInputs(graph, operation, layer);
      AddVectorFields(operation, layer);
      layer["outputs"] = operation.output_width;
      break;
  }
  return layer;
}

int VersionOf(const Graph& graph) {
  for (size_t i = 0; i < graph.operations.size(); ++i) {
    if (TakesNamed(graph, i)) return kNamedInputsVersion;
  }
  return kExportVersion;
}

std::string NameAt(const std::vector<std::string>& names, size_t index) {
  return names.empty() ? std::string() : names[index];
}

// A named column has no number: files may have their columns in any order.
Json ColumnJson(int number, const std::string& name) {
  return name.empty() ? Json{{"column", number}} : Json{{"name", name}};
}

Json LabelJson(const model::SchemaSpec& schema) {
  if (schema.task == model::Task::kMultiLabel) {
    Json label = {{"columns", schema.label_columns}};
    if (!schema.names.labels.empty()) label["names"] = schema.names.labels;
    return label;
  }
  Json label = ColumnJson(schema.label_column, schema.names.label);
  if (schema.task == model::Task::kBinary) label["positive"] = schema.label_positive;
  return label;
}

}  // namespace

const char* ActivationName(Activation activation) {
  switch (activation) {
    case Activation::kRelu:
      return "relu";
    case Activation::kSigmoid:
      return "sigmoid";
    case Activation::kTanh:
      return "tanh";
    case Activation::kNone:
      break;
  }
  return "none";
}

std::vector<ExportedTensor> TensorsOf(const Graph& graph) {
  std::vector<ExportedTensor> tensors;
  for (const Operation& operation : graph.operations) {
    for (const ParameterSpec& spec : operation.parameters) {
      if (spec.copy_of >= 0) continue;
      if (operation.kind == OperationKind::kImported) {  // as the user's own code names it
        tensors.push_back({spec.name, spec, spec.shape});
        continue;
      }
      std::vector<int64_t> shape = {spec.columns};
      if (spec.name != "bias") shape.insert(shape.begin(), spec.rows);
      tensors.push_back({operation.name + "." + spec.name, spec, std::move(shape)});
    }
  }
  return tensors;
}

std::string ModelJson(const ExportedModel& model, const ExportOrigin& origin) {
  Json layers = Json::array();
  const std::vector<ExportedTensor> tensors = TensorsOf(model.graph);
  for (size_t i = 0; i < model.graph.operations.size(); ++i) {
    Json layer = LayerJson(model.graph, i);
    for (const ExportedTensor& tensor : tensors) {
      if (tensor.spec.operation != static_cast<int>(i)) continue;
      layer["parameters"][tensor.spec.name] = {{"tensor", tensor.name}, {"shape", tensor.shape}};
    }
    layers.push_back(std::move(layer));
  }
  Json json = {{"format", "medley-model"},
               {"formatVersion", VersionOf(model.graph)},
               {"medleyVersion", origin.medley_version},
               {"job", {{"name", origin.job}, {"uid", origin.job_uid}, {"step", origin.step}}},
               {"model", model.graph.name},
               {"task", model::TaskName(model.schema.task)},
               {"output", OutputText(model.schema.task)},
               {"inputs", {{"ids", model.graph.shape.fields}, {"numerics", model.graph.shape.numerics}}},
               {"weights", {{"file", kWeightsFile}, {"type", "float32"}, {"order", "inputs x outputs, row-major"}}},
               {"layers", layers}};
  if (model.FromPyTorch()) {
    json["program"] = {{"file", kProgramFile}, {"format", "torch.export"}, {"result", model.output}};
    json["output"] = ProgramOutputText(model.schema.task);
    json["weights"]["order"] = "as in the model's state_dict";
  }
  AddLabel(model, json);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string SchemaJson(const ExportedModel& model) {
  const model::SchemaSpec& schema = model.schema;
  Json categorical = Json::array();
  for (size_t field = 0; field < schema.categorical.size(); ++field) {
    Json column = ColumnJson(schema.categorical[field], NameAt(schema.names.categorical, field));
    column["field"] = field;
    if (field < schema.whole_numbers.size() && schema.whole_numbers[field]) column["wholeNumbers"] = true;
    categorical.push_back(std::move(column));
  }
  Json numeric = Json::array();
  for (size_t i = 0; i < schema.numeric.size(); ++i) {
    const NumericTransform& fitted = model.transform.columns[i];
    Json column = ColumnJson(schema.numeric[i], NameAt(schema.names.numeric, i));
    if (const model::ColumnPart part = PartOf(schema, i); part != model::ColumnPart::kValue) {
      column["part"] = PartName(part);
    }
    column["log"] = fitted.log;
    column["mean"] = fitted.mean;
    column["inverseDeviation"] = fitted.inverse_deviation;
    if (schema.numeric_buckets > 0) {
      column["field"] = schema.categorical.size() + i;
      column["bucketEdges"] = fitted.edges;
    }
    numeric.push_back(std::move(column));
  }
  Json inputs = Json::array();
  for (const model::InputSpec& input : schema.inputs) {
    inputs.push_back({{"name", input.name},
                      {"type", input.type},
                      {"shape", input.shape},
                      {"scale", input.scale},
                      {"mean", input.mean},
                      {"std", input.deviation}});
    if (!input.storage.empty()) inputs.back()["storage"] = input.storage;
    if (!input.columns.empty()) inputs.back()["columns"] = input.columns.size();
  }
  Json json = {{"formatVersion", kExportVersion},
               {"delimiter", std::string(1, model.delimiter)},
               {"header", schema.header},
               {"label", LabelJson(schema)},
               {"missing", MissingTexts()},
               {"missingIgnoresCase", true},
               {"moreMissing", schema.missing},
               {"precision", model.transform.single_precision ? "float32" : "float64"},
               {"maxBadRows", model.max_bad_rows},
               {"categorical", categorical},
               {"numeric", numeric},
               {"numericBuckets", schema.numeric_buckets},
               {"hash", {{"function", "XXH3-64"}, {"seed", "the index of the field"}, {"rows", model.embedding_rows}}}};
  if (schema.day_first) json["dayFirst"] = true;
  if (HasWeights(schema)) {
    json["weight"] = ColumnJson(schema.weight_column, schema.names.weight);
    json["weight"]["mean"] = model.transform.weight_mean;
  }
  // By which data with other columns at these numbers are found.
  if (!model.transform.header.empty()) AddNames(model.transform.header, "headerNames", "headerBytes", json);
  if (!inputs.empty()) json["inputs"] = std::move(inputs);
  if (!model.array_format.empty()) {
    json["arrays"] = {{"format", model.array_format}, {"labels", schema.label_count}};
    if (!schema.label_storage.empty()) json["arrays"]["labelStorage"] = schema.label_storage;
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace medley::worker
