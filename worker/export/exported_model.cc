#include "worker/export/exported_model.h"

#include <nlohmann/json.hpp>

#include "common/base/status.h"

namespace medley::worker {
namespace {

using Json = nlohmann::ordered_json;

const char* KindName(OperationKind kind) {
  switch (kind) {
    case OperationKind::kEmbedding:
      return "Embedding";
    case OperationKind::kFullyConnected:
      return "FullyConnected";
    case OperationKind::kLoss:
      break;
  }
  return "Loss";
}

const char* ActivationText(Activation activation) {
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

Json LayerJson(const Operation& operation) {
  Json layer = {{"name", operation.name}, {"kind", KindName(operation.kind)}};
  switch (operation.kind) {
    case OperationKind::kEmbedding:
      layer["input"] = "ids, numerics";
      layer["combine"] = operation.sum_fields ? "sum" : "concatenate";
      layer["outputs"] = operation.output_width;
      break;
    case OperationKind::kFullyConnected:
      layer["input"] = operation.reads_numerics ? "numerics" : "previous";
      layer["outputs"] = operation.output_width;
      layer["activation"] = ActivationText(operation.activation);
      break;
    case OperationKind::kLoss:
      layer["loss"] = "logLoss";
      break;
  }
  return layer;
}

std::string NameAt(const std::vector<std::string>& names, size_t index) {
  return names.empty() ? std::string() : names[index];
}

// A named column has no number: files may have their columns in any order.
Json ColumnJson(int number, const std::string& name) {
  return name.empty() ? Json{{"column", number}} : Json{{"name", name}};
}

}  // namespace

std::vector<ExportedTensor> TensorsOf(const Graph& graph) {
  std::vector<ExportedTensor> tensors;
  for (const Operation& operation : graph.operations) {
    for (const ParameterSpec& spec : operation.parameters) {
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
    Json layer = LayerJson(model.graph.operations[i]);
    for (const ExportedTensor& tensor : tensors) {
      if (tensor.spec.operation != static_cast<int>(i)) continue;
      layer["parameters"][tensor.spec.name] = {{"tensor", tensor.name}, {"shape", tensor.shape}};
    }
    layers.push_back(std::move(layer));
  }
  const Json json = {
      {"format", "medley-model"},
      {"formatVersion", kExportVersion},
      {"medleyVersion", origin.medley_version},
      {"job", {{"name", origin.job}, {"uid", origin.job_uid}, {"step", origin.step}}},
      {"model", model.graph.name},
      {"task", "binary"},
      {"output", "the probability of label 1: the sigmoid of the last FullyConnected layer"},
      {"inputs", {{"ids", model.graph.shape.fields}, {"numerics", model.graph.shape.numerics}}},
      {"weights", {{"file", kWeightsFile}, {"type", "float32"}, {"order", "inputs x outputs, row-major"}}},
      {"layers", layers}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string SchemaJson(const ExportedModel& model) {
  const model::SchemaSpec& schema = model.schema;
  Json categorical = Json::array();
  for (size_t field = 0; field < schema.categorical.size(); ++field) {
    Json column = ColumnJson(schema.categorical[field], NameAt(schema.names.categorical, field));
    column["field"] = field;
    categorical.push_back(std::move(column));
  }
  Json numeric = Json::array();
  for (size_t i = 0; i < schema.numeric.size(); ++i) {
    const NumericTransform& fitted = model.transform.columns[i];
    Json column = ColumnJson(schema.numeric[i], NameAt(schema.names.numeric, i));
    column["log"] = fitted.log;
    column["mean"] = fitted.mean;
    column["inverseDeviation"] = fitted.inverse_deviation;
    if (schema.numeric_buckets > 0) {
      column["field"] = schema.categorical.size() + i;
      column["bucketEdges"] = fitted.edges;
    }
    numeric.push_back(std::move(column));
  }
  Json label = ColumnJson(schema.label_column, schema.names.label);
  label["positive"] = schema.label_positive;
  const Json json = {
      {"formatVersion", kExportVersion},
      {"delimiter", std::string(1, model.delimiter)},
      {"header", schema.header},
      {"label", label},
      {"missing", {"", "?", "NULL", "NA"}},
      {"categorical", categorical},
      {"numeric", numeric},
      {"numericBuckets", schema.numeric_buckets},
      {"hash", {{"function", "XXH3-64"}, {"seed", "the index of the field"}, {"rows", model.embedding_rows}}}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace medley::worker
