#include "worker/export/parse_inputs.h"

#include <algorithm>

#include "common/base/status.h"
#include "common/model/data_format.h"
#include "worker/data/array_format.h"

namespace medley::worker {
namespace {

using document::Reader;

constexpr int64_t kMostNumbers = int64_t{1} << 28;  // of a sample

absl::Status ReadInput(const Reader& reader, const ExportedModel& model, model::InputSpec& input) {
  input.name = reader.RequiredString("name");
  input.type = reader.RequiredString("type");
  input.storage = reader.String("storage");
  reader.Read("shape", input.shape);
  reader.Read("scale", input.scale);
  reader.Read("mean", input.mean);
  reader.Read("std", input.deviation);
  if (input.type != "float32" && input.type != "int64" && input.type != "category") {
    return base::InvalidArgument("{}.type: '{}' is unknown", reader.path(), input.type);
  }
  int64_t count = 1;
  for (const int64_t size : input.shape) {
    if (size < 1 || size > kMostNumbers / count) {
      return base::InvalidArgument("{}.shape: {} is out of range", reader.path(), size);
    }
    count *= size;
  }
  const int64_t columns = reader.Int("columns", 0);
  if (columns < 0 || (columns > 0 && (columns != count || !model.array_format.empty()))) {
    return base::InvalidArgument("{}.columns: {} do not fit the shape", reader.path(), columns);
  }
  if (columns == 0 && model.array_format.empty()) {
    return base::InvalidArgument("{}.columns: must be above 0, as the data are a table", reader.path());
  }
  input.columns.assign(static_cast<size_t>(columns), -1);
  const auto channels = input.shape.empty() ? size_t{1} : static_cast<size_t>(input.shape.front());
  for (const auto* numbers : {&input.mean, &input.deviation}) {
    if (numbers->size() > 1 && numbers->size() != channels) {
      return base::InvalidArgument("{}: has {} numbers for {} channels", reader.path(), numbers->size(), channels);
    }
  }
  if (std::ranges::find(input.deviation, 0.0) != input.deviation.end()) {
    return base::InvalidArgument("{}.std: must not be 0", reader.path());
  }
  return absl::OkStatus();
}

bool IsElement(const std::string& name) {
  return name.empty() || name == "uint8" || name == "int32" || name == "int64" || name == "float32";
}

}  // namespace

absl::Status ReadInputs(const Reader& root, ExportedModel& model) {
  model::SchemaSpec& schema = model.schema;
  if (root.Has("arrays")) {
    const Reader arrays = root.Child("arrays");
    model.array_format = arrays.RequiredString("format");
    schema.label_count = static_cast<int>(std::clamp<int64_t>(arrays.Int("labels", 1), 0, kMostNumbers));
    schema.label_storage = arrays.String("labelStorage");
    if (!model::HoldsArrays(model.array_format)) {
      return base::InvalidArgument("{}.format: '{}' is unknown", arrays.path(), model.array_format);
    }
    if (!IsElement(schema.label_storage)) {
      return base::InvalidArgument("{}.labelStorage: '{}' is unknown", arrays.path(), schema.label_storage);
    }
  }
  int64_t columns = 0, numbers = 0;
  for (const Reader& reader : root.List("inputs")) {
    model::InputSpec& input = schema.inputs.emplace_back();
    MEDLEY_RETURN_IF_ERROR(ReadInput(reader, model, input));
    if (!IsElement(input.storage)) {
      return base::InvalidArgument("{}.storage: '{}' is unknown", reader.path(), input.storage);
    }
    columns += std::ssize(input.columns);
    int64_t count = 1;
    for (const int64_t size : input.shape) count *= size;
    numbers += count;
    if (numbers > kMostNumbers) return base::InvalidArgument("inputs: have more than {} numbers", kMostNumbers);
  }
  const auto listed = std::ssize(schema.categorical) + std::ssize(root.List("numeric"));
  if (columns > 0 && columns != listed) {
    return base::InvalidArgument("inputs: have {} columns, but {} are listed", columns, listed);
  }
  if (!model.array_format.empty() && schema.inputs.empty()) {
    return base::InvalidArgument("inputs: must not be empty, as the data are arrays");
  }
  return absl::OkStatus();
}

absl::Status ReadProgram(const Reader& root, ExportedModel& model) {
  for (const Operation& operation : model.graph.operations) {
    if (operation.kind != OperationKind::kImported && operation.kind != OperationKind::kLoss) {
      return base::InvalidArgument("layer {}: layers of Medley's own are not mixed with those of PyTorch",
                                   operation.name);
    }
  }
  if (!root.Has("program")) {
    return base::InvalidArgument(
        "program: there is none: an earlier version wrote this export; load {} into the model with load_state_dict",
        kWeightsFile);
  }
  const Reader program = root.Child("program");
  if (const std::string file = program.RequiredString("file"); file != kProgramFile) {
    return base::InvalidArgument("{}.file: must be '{}'", program.path(), kProgramFile);
  }
  model.output = program.String("result");
  return absl::OkStatus();
}

}  // namespace medley::worker
