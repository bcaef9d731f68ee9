#include "common/model/input_validate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/model/data_format.h"
#include "common/model/field_rules.h"

namespace medley::model {
namespace {

absl::Status ValidateUri(const std::string& path, const std::string& uri) {
  if (IsReadable(uri)) return absl::OkStatus();
  return base::InvalidArgument("{}: '{}' does not start with {}", path, uri, kReadablePlaces);
}

// One number, or one for each index of the first axis.
absl::Status ValidateChannels(const std::string& path, const std::vector<double>& values, const InputSpec& input) {
  const size_t channels = input.shape.empty() ? 1 : static_cast<size_t>(input.shape.front());
  if (values.size() <= 1 || values.size() == channels) return absl::OkStatus();
  return base::InvalidArgument("{}: has {} numbers, but the first axis of shape has {}", path, values.size(), channels);
}

absl::Status ValidateShape(const std::string& path, const InputSpec& input) {
  const auto most = static_cast<int64_t>(Most("spec.data.inputs[].shape[]"));  // also of all axes together
  MEDLEY_RETURN_IF_ERROR(ItemsInBounds("spec.data.inputs[].shape", input.shape.size()));
  int64_t count = 1;
  for (const int64_t size : input.shape) {
    if (size < 1 || size > most || (count *= size) > most) {
      return base::InvalidArgument("{}.shape: [{}] must have from 1 to {} numbers", path, fmt::join(input.shape, ", "),
                                   most);
    }
  }
  return absl::OkStatus();
}

absl::Status ValidateInput(const std::string& path, const InputSpec& input, const SourceSpec& source) {
  if (input.name.empty()) return base::InvalidArgument("{}.name: is required", path);
  MEDLEY_RETURN_IF_ERROR(ValidateShape(path, input));
  const bool changes = input.scale != 1 || !input.mean.empty() || !input.deviation.empty();
  if (!source.arrays()) {
    MEDLEY_RETURN_IF_ERROR(OneOf(path + ".type", input.type));
    if (input.columns.empty()) return base::InvalidArgument("{}.columns: are required for {}", path, source.format);
    if (changes || !input.storage.empty()) {
      return base::InvalidArgument(
          "{}: storage, scale, mean and std go with the formats {}; columns of {} are standardised", path,
          ArrayFormats(), source.format);
    }
    return absl::OkStatus();
  }
  MEDLEY_RETURN_IF_ERROR(OneOf(path + ".type", input.type));
  if (input.type == "category") {
    return base::InvalidArgument("{}.type: category goes with the formats {}", path, TableFormats());
  }
  if (!input.columns.empty()) {
    return base::InvalidArgument("{}.columns: go with the formats {}", path, TableFormats());
  }
  if (!input.storage.empty()) MEDLEY_RETURN_IF_ERROR(OneOf(path + ".storage", input.storage));
  if (!input.storage.empty() && !HasNoHeader(source.format)) {
    return base::InvalidArgument("{}.storage: goes with the format {}; files of {} tell it", path, RawFormats(),
                                 source.format);
  }
  if (changes && input.type != "float32") {
    return base::InvalidArgument("{}: scale, mean and std go with the type float32", path);
  }
  MEDLEY_RETURN_IF_ERROR(InBounds(path + ".scale", input.scale));
  MEDLEY_RETURN_IF_ERROR(ValidateChannels(path + ".mean", input.mean, input));
  MEDLEY_RETURN_IF_ERROR(ValidateChannels(path + ".std", input.deviation, input));
  for (const double mean : input.mean) MEDLEY_RETURN_IF_ERROR(InBounds(path + ".mean[]", mean));
  for (const double deviation : input.deviation) MEDLEY_RETURN_IF_ERROR(InBounds(path + ".std[]", deviation));
  return absl::OkStatus();
}

// A source of arrays has a file for each input, and one for the labels.
absl::Status ValidateArrays(const std::string& path, const SourceSpec& source, const SchemaSpec& schema) {
  if (schema.inputs.empty()) {
    return base::InvalidArgument("spec.data.inputs: are required for the format {}", source.format);
  }
  if (source.uri.empty() == source.files.empty()) {
    return base::InvalidArgument("{}: exactly one of uri and files must be given", path);
  }
  if (source.files.empty() && schema.inputs.size() > 1) {
    return base::InvalidArgument("{}.files: {} inputs need a file each, by their names", path, schema.inputs.size());
  }
  if (source.files.empty()) MEDLEY_RETURN_IF_ERROR(ValidateUri(path + ".uri", source.uri));
  for (const InputSpec& input : schema.inputs) {
    if (source.files.empty()) break;
    const auto file = source.files.find(input.name);
    if (file == source.files.end()) return base::InvalidArgument("{}.files: has none for input '{}'", path, input.name);
    MEDLEY_RETURN_IF_ERROR(ValidateUri(fmt::format("{}.files.{}", path, input.name), file->second));
  }
  if (!source.files.empty() && source.files.size() != schema.inputs.size()) {
    return base::InvalidArgument("{}.files: has {} files, but spec.data.inputs has {} inputs", path,
                                 source.files.size(), schema.inputs.size());
  }
  if ((schema.task == Task::kOwnLoss) != source.labels.empty()) {
    return base::InvalidArgument("{}.labels: {}", path,
                                 source.labels.empty() ? "the file of the labels is required"
                                                       : "spec.model.task ownLoss has none; make them an input");
  }
  return source.labels.empty() ? absl::OkStatus() : ValidateUri(path + ".labels", source.labels);
}

absl::Status ValidateSource(const std::string& path, const SourceSpec& source, const SchemaSpec& schema) {
  MEDLEY_RETURN_IF_ERROR(OneOf(path + ".format", source.format));
  if (source.arrays()) return ValidateArrays(path, source, schema);
  if (!source.files.empty() || !source.labels.empty()) {
    return base::InvalidArgument("{}: files and labels go with the formats {}", path, ArrayFormats());
  }
  return ValidateUri(path + ".uri", source.uri);
}

absl::Status ValidateValidation(const ValidationSpec& validation, const DataSpec& data) {
  const SourceSpec& source = validation.source;
  const bool file = !source.uri.empty() || !source.files.empty() || !source.format.empty() || !source.labels.empty();
  if (file == (validation.fraction != 0)) {
    return base::InvalidArgument("spec.data.validation: exactly one of fraction, and uri or files must be given");
  }
  if (!file) {
    if (validation.fraction > 0 && validation.fraction < 1) return absl::OkStatus();
    return base::InvalidArgument("spec.data.validation.fraction: {} is not between 0 and 1", validation.fraction);
  }
  MEDLEY_RETURN_IF_ERROR(ValidateSource("spec.data.validation", source, data.schema));
  if (source.arrays() == data.train.arrays()) return absl::OkStatus();
  return base::InvalidArgument("spec.data.validation.format: {} and {} cannot be mixed", data.train.format,
                               source.format);
}

absl::Status ValidateLabels(const SchemaSpec& schema, const SourceSpec& source) {
  const std::string path = "spec.data.schema.label";
  if (!schema.label_storage.empty()) MEDLEY_RETURN_IF_ERROR(OneOf(path + ".storage", schema.label_storage));
  if (!schema.label_storage.empty() && !HasNoHeader(source.format)) {
    return base::InvalidArgument("{}.storage: goes with the format {}", path, RawFormats());
  }
  const bool several = schema.task == Task::kRegression || schema.task == Task::kMultiLabel ||
                       schema.task == Task::kMultiClass;  // a class for each token
  MEDLEY_RETURN_IF_ERROR(InBounds(path + ".count", schema.label_count));
  if (schema.label_count > 1 && !(several && source.arrays())) {
    return base::InvalidArgument(
        "{}.count: goes with spec.model.task regression, multiLabel and multiClass, and the formats {}", path,
        ArrayFormats());
  }
  if (!source.arrays()) return absl::OkStatus();
  const bool columns = schema.label_column >= 0 || !schema.names.label.empty() || !schema.label_columns.empty() ||
                       !schema.label_positive.empty();
  if (!columns) return absl::OkStatus();
  return base::InvalidArgument("{}: column, columns and positive go with the formats {}", path, TableFormats());
}

}  // namespace

absl::Status ValidateInputs(const JobSpec& spec) {
  const DataSpec& data = spec.data;
  const SchemaSpec& schema = data.schema;
  MEDLEY_RETURN_IF_ERROR(ValidateSource("spec.data.train", data.train, schema));
  if (data.validation) MEDLEY_RETURN_IF_ERROR(ValidateValidation(*data.validation, data));
  if (data.test) {
    MEDLEY_RETURN_IF_ERROR(ValidateSource("spec.data.test", *data.test, schema));
    if (data.test->arrays() != data.train.arrays()) {
      return base::InvalidArgument("spec.data.test.format: {} and {} cannot be mixed", data.train.format,
                                   data.test->format);
    }
  }
  MEDLEY_RETURN_IF_ERROR(ValidateLabels(schema, data.train));
  if (spec.model.torchscript_uri.empty() && schema.inputs.empty()) return absl::OkStatus();
  if (schema.inputs.empty()) {
    return base::InvalidArgument("spec.data.inputs: are required for spec.model.torchScript, whose file has no shapes");
  }
  if (!spec.model.imported()) {
    return base::InvalidArgument(
        "spec.data.inputs: go with spec.model.exported and torchScript, whose arguments have "
        "names");
  }
  MEDLEY_RETURN_IF_ERROR(ItemsInBounds("spec.data.inputs", schema.inputs.size()));
  std::set<std::string_view> names;
  size_t columns = 0;
  for (size_t i = 0; i < schema.inputs.size(); ++i) {
    const InputSpec& input = schema.inputs[i];
    const std::string path = fmt::format("spec.data.inputs[{}]", i);
    MEDLEY_RETURN_IF_ERROR(ValidateInput(path, input, data.train));
    if (!names.insert(input.name).second) {
      return base::InvalidArgument("{}.name: '{}' is the name of another input", path, input.name);
    }
    columns += input.columns.size();
  }
  if (columns != schema.categorical.size() + schema.numeric.size() || schema.numeric_buckets > 0) {
    return base::InvalidArgument(
        "spec.data.schema: categorical, numeric and numericBuckets exclude spec.data.inputs, which name the columns");
  }
  return absl::OkStatus();
}

}  // namespace medley::model
