// Reads model.json and schema.json.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "common/base/status.h"
#include "common/document/parse.h"
#include "common/document/reader.h"
#include "worker/data/schema.h"
#include "worker/export/exported_model.h"
#include "worker/export/parse_inputs.h"
#include "worker/export/parse_layers.h"
#include "worker/export/parse_names.h"

namespace medley::worker {
namespace {

using document::Reader;

constexpr int64_t kMaxColumn = int64_t{1} << 20;  // of a file

absl::Status CheckVersion(int64_t version, int newest) {
  if (version >= kExportVersion && version <= newest) return absl::OkStatus();
  return base::InvalidArgument("formatVersion {} is not supported, this program reads version{} {}", version,
                               newest > kExportVersion ? "s up to" : "", newest);
}

absl::Status CheckColumn(const Reader& reader, int64_t column, int64_t least) {
  if (column >= least && column < kMaxColumn) return absl::OkStatus();
  return base::InvalidArgument("{}.column: {} is out of range", reader.path(), column);
}

// Reads the number of a column, or its name into names[i], for the i-th column of a list.
absl::Status ReadListed(const Reader& reader, std::vector<int>& numbers, std::vector<std::string>& names) {
  numbers.push_back(static_cast<int>(reader.Int("column", -1)));
  const std::string name = reader.String("name");
  if (name.empty()) MEDLEY_RETURN_IF_ERROR(CheckColumn(reader, reader.Int("column", -1), 0));
  if (!name.empty() || !names.empty()) names.resize(numbers.size());
  if (!name.empty()) names.back() = name;
  return absl::OkStatus();
}

absl::Status ReadPart(const Reader& column, model::SchemaSpec& schema) {
  const std::string name = column.String("part");
  for (const model::ColumnPart part : model::kDateParts) {
    if (name != PartName(part)) continue;
    schema.parts.resize(schema.numeric.size());
    schema.parts.back() = part;
    return absl::OkStatus();
  }
  if (name.empty()) return absl::OkStatus();
  return base::InvalidArgument("{}.part: '{}' is unknown", column.path(), name);
}

// Earlier versions computed with float32.
double Precise(double number, const Transform& transform) {
  return transform.single_precision ? static_cast<double>(static_cast<float>(number)) : number;
}

absl::Status ReadWeight(const Reader& weight, ExportedModel& model) {
  model::SchemaSpec& schema = model.schema;
  schema.names.weight = weight.String("name");
  schema.weight_column = static_cast<int>(weight.Int("column", -1));
  MEDLEY_RETURN_IF_ERROR(CheckColumn(weight, weight.Int("column", -1), schema.names.weight.empty() ? 0 : -1));
  model.transform.weight_mean = weight.Number("mean", 1);
  if (model.transform.weight_mean > 0) return absl::OkStatus();
  return base::InvalidArgument("{}.mean: must be above 0", weight.path());
}

absl::Status ReadSchema(const Reader& root, ExportedModel& model) {
  MEDLEY_RETURN_IF_ERROR(CheckVersion(root.Int("formatVersion", 0), kExportVersion));
  model::SchemaSpec& schema = model.schema;
  const std::string delimiter = root.RequiredString("delimiter");
  if (delimiter.size() != 1) return base::InvalidArgument("delimiter: must be one character");
  model.delimiter = delimiter[0];
  schema.header = root.Bool("header", false);
  const Reader label = root.Child("label");
  MEDLEY_RETURN_IF_ERROR(CheckColumn(label, label.Int("column", -1), -1));
  schema.label_column = static_cast<int>(label.Int("column", -1));
  label.Read("columns", schema.label_columns);
  const int64_t least = label.Has("names") ? -1 : 0;
  for (const int column : schema.label_columns) MEDLEY_RETURN_IF_ERROR(CheckColumn(label, column, least));
  schema.names.label = label.String("name");
  schema.label_positive = label.String("positive");
  schema.names.labels = label.Strings("names");
  if (!schema.names.labels.empty() && schema.names.labels.size() != schema.label_columns.size()) {
    return base::InvalidArgument("{}.names: has {} names for {} columns", label.path(), schema.names.labels.size(),
                                 schema.label_columns.size());
  }
  if (root.Has("weight")) MEDLEY_RETURN_IF_ERROR(ReadWeight(root.Child("weight"), model));
  schema.missing = root.Strings("moreMissing");
  schema.day_first = root.Bool("dayFirst", false);
  model.transform.single_precision = root.String("precision", "float32") == "float32";
  model.max_bad_rows = root.Int("maxBadRows", 0);
  if (root.Has("headerNames")) {
    MEDLEY_RETURN_IF_ERROR(ReadNames(root, "headerNames", "headerBytes", model.transform.header));
  }
  schema.numeric_buckets = static_cast<int>(root.Int("numericBuckets", 0));
  for (const Reader& column : root.List("categorical")) {
    MEDLEY_RETURN_IF_ERROR(ReadListed(column, schema.categorical, schema.names.categorical));
    if (!column.Bool("wholeNumbers", false)) continue;
    schema.whole_numbers.resize(schema.categorical.size());
    schema.whole_numbers.back() = true;
  }
  if (!schema.whole_numbers.empty()) schema.whole_numbers.resize(schema.categorical.size());
  MEDLEY_RETURN_IF_ERROR(ReadInputs(root, model));
  for (const Reader& column : root.List("numeric")) {
    MEDLEY_RETURN_IF_ERROR(ReadListed(column, schema.numeric, schema.names.numeric));
    NumericTransform& fitted = model.transform.columns.emplace_back();
    fitted.log = column.Bool("log", false);
    fitted.mean = Precise(column.Number("mean", 0), model.transform);
    fitted.inverse_deviation = Precise(column.Number("inverseDeviation", 0), model.transform);
    MEDLEY_RETURN_IF_ERROR(ReadPart(column, schema));
    if (const nlohmann::json& tree = column.tree(); tree.contains("bucketEdges")) {
      if (!tree["bucketEdges"].is_array())
        return base::InvalidArgument("{}.bucketEdges: must be a list", column.path());
      for (const nlohmann::json& edge : tree["bucketEdges"]) {
        if (!edge.is_number()) return base::InvalidArgument("{}.bucketEdges: must be numbers", column.path());
        fitted.edges.push_back(Precise(edge.get<double>(), model.transform));
      }
    }
  }
  if (!schema.parts.empty()) schema.parts.resize(schema.numeric.size());
  if (!schema.names.categorical.empty()) schema.names.categorical.resize(schema.categorical.size());
  if (!schema.names.numeric.empty()) schema.names.numeric.resize(schema.numeric.size());
  if (!schema.names.empty() && !schema.header)
    return base::InvalidArgument("header: must be true, as columns are named");
  model.embedding_rows = root.Child("hash").Int("rows", 0);
  if (model.embedding_rows < 1 || model.embedding_rows > kMostExportedFloats) {
    return base::InvalidArgument("hash.rows: {} is out of range", model.embedding_rows);
  }
  return absl::OkStatus();
}

// What the outputs mean: the task, and what its predictions need.
absl::Status ReadTask(const Reader& root, ExportedModel& model) {
  const std::string name = root.String("task", "binary");
  const auto task = model::TaskNamed(name);
  if (!task) return base::InvalidArgument("task: '{}' is unknown", name);
  model.schema.task = *task;
  const Reader label = root.Child("label");
  model.transform.label.mean = Precise(label.Number("mean", 0), model.transform);
  model.transform.label.deviation = Precise(label.Number("deviation", 1), model.transform);
  if (!(model.transform.label.deviation > 0)) return base::InvalidArgument("label.deviation: must be above 0");
  const std::string transform = label.String("transform");
  if (!transform.empty() && (transform != "log1p" || *task != model::Task::kRegression)) {
    return base::InvalidArgument("label.transform: '{}' is unknown for task {}", transform, name);
  }
  model.transform.label.log = model.schema.label_log = !transform.empty();
  if (*task == model::Task::kMultiClass) {
    MEDLEY_RETURN_IF_ERROR(ReadNames(root, "classes", "classBytes", model.transform.label.classes));
    const size_t classes = model.transform.label.classes.size();
    if (classes < 2 || classes > model::kMostClasses) {
      return base::InvalidArgument("classes: has {} names, but must have from 2 to {}", classes, model::kMostClasses);
    }
  }
  const bool several = *task == model::Task::kMultiLabel && model.array_format.empty();
  if (several == model.schema.label_columns.empty()) {
    return base::InvalidArgument("task: '{}' does not fit the label of {}", name, kSchemaFile);
  }
  return absl::OkStatus();
}

// 0: any number.
int OutputsOf(const ExportedModel& model) {
  if (model.schema.task == model::Task::kMultiClass) {
    return static_cast<int>(model.transform.label.classes.size()) * model.schema.label_count;
  }
  return model::OutputsOf(model.schema);
}

absl::Status ReadLayers(const Reader& root, ExportedModel& model) {
  MEDLEY_RETURN_IF_ERROR(CheckVersion(root.Int("formatVersion", 0), kNamedInputsVersion));
  MEDLEY_RETURN_IF_ERROR(ReadTask(root, model));
  model.graph.name = root.String("model");
  model.graph.shape = ShapeOf(model.schema);
  std::set<std::string> names;
  for (const Reader& layer : root.List("layers")) {
    MEDLEY_RETURN_IF_ERROR(ReadExportedLayer(layer, OutputsOf(model), model.graph));
    const std::string& name = model.graph.operations.back().name;
    if (!names.insert(name).second) return base::InvalidArgument("{}.name: '{}' is not unique", layer.path(), name);
  }
  const auto& operations = model.graph.operations;
  if (operations.size() < 2 || operations.back().kind != OperationKind::kLoss) {
    return base::InvalidArgument("layers: the last layer must be a Loss");
  }
  if (model.FromPyTorch()) return ReadProgram(root, model);
  if (!model.array_format.empty()) return base::InvalidArgument("layers: arrays are read by models from PyTorch only");
  MEDLEY_RETURN_IF_ERROR(CheckLayerUses(model.graph));
  for (const Operation& operation : operations) {
    if (operation.kind != OperationKind::kEmbedding) continue;
    const int64_t rows = operation.parameters[0].rows;
    if (rows != model.embedding_rows) {
      return base::InvalidArgument("layer {}: the table has {} rows, but values are hashed to {}", operation.name, rows,
                                   model.embedding_rows);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ExportedModel> ParseExportedModel(std::string_view model_json, std::string_view schema_json) {
  const auto parse = [](std::string_view text, std::string_view file, auto read) -> absl::Status {
    const absl::StatusOr<nlohmann::json> parsed =
        document::ParseJson(text, {.bytes = size_t{kMostJsonBytes}, .values = kMostJsonValues});
    if (!parsed.ok()) {
      return base::InvalidArgument("{}: the file is not a JSON object: {}", file, base::Message(parsed.status()));
    }
    const nlohmann::json& tree = *parsed;
    if (!tree.is_object()) return base::InvalidArgument("{}: the file is not a JSON object", file);
    const Reader root(tree);
    absl::Status status = read(root);
    // A field of a wrong type is the cause of what it leads to.
    if (const absl::Status types = root.Finish(); !types.ok()) status = types;
    return base::Annotate(status, file);
  };
  ExportedModel model;
  MEDLEY_RETURN_IF_ERROR(parse(schema_json, kSchemaFile, [&](const Reader& root) { return ReadSchema(root, model); }));
  MEDLEY_RETURN_IF_ERROR(parse(model_json, kModelFile, [&](const Reader& root) { return ReadLayers(root, model); }));
  return model;
}

}  // namespace medley::worker
