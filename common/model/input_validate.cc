#include "common/model/input_validate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/model/data_format.h"
#include "common/model/job_bounds.h"

namespace medley::model {
namespace {

// One number, or one for each index of the first axis.
absl::Status ValidateChannels(const std::string& path, const std::vector<double>& values, const InputSpec& input) {
  const size_t channels = input.shape.empty() ? 1 : static_cast<size_t>(input.shape.front());
  if (values.size() <= 1 || values.size() == channels) return absl::OkStatus();
  return base::InvalidArgument("{}: has {} numbers, but the first axis of shape has {}", path, values.size(), channels);
}

absl::Status ValidateShape(const std::string& path, const InputSpec& input) {
  const int64_t most = MostNumbersOfInput();
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
  MEDLEY_RETURN_IF_ERROR(ValidateShape(path, input));
  if (!source.arrays()) {
    if (input.scale == 1 && input.mean.empty() && input.deviation.empty() && input.storage.empty()) {
      return absl::OkStatus();
    }
    return base::InvalidArgument(
        "{}: storage, scale, mean and std go with the formats {}; columns of {} are standardised", path, ArrayFormats(),
        source.format);
  }
  if (!input.storage.empty() && !HasNoHeader(source.format)) {
    return base::InvalidArgument("{}.storage: goes with the format {}; files of {} tell it", path, RawFormats(),
                                 source.format);
  }
  MEDLEY_RETURN_IF_ERROR(ValidateChannels(path + ".mean", input.mean, input));
  return ValidateChannels(path + ".std", input.deviation, input);
}

// A source of arrays has a file for each input.
absl::Status ValidateFiles(const std::string& path, const SourceSpec& source, const SchemaSpec& schema) {
  if (!source.arrays()) return absl::OkStatus();
  if (source.files.empty()) {
    if (schema.inputs.size() <= 1) return absl::OkStatus();
    return base::InvalidArgument("{}.files: {} inputs need a file each, by their names", path, schema.inputs.size());
  }
  for (const InputSpec& input : schema.inputs) {
    if (source.files.contains(input.name)) continue;
    return base::InvalidArgument("{}.files: has none for input '{}'", path, input.name);
  }
  if (source.files.size() == schema.inputs.size()) return absl::OkStatus();
  return base::InvalidArgument("{}.files: has {} files, but spec.data.inputs has {} inputs", path, source.files.size(),
                               schema.inputs.size());
}

absl::Status ValidateLabels(const SchemaSpec& schema, const SourceSpec& source) {
  const std::string path = "spec.data.schema.label";
  if (!schema.label_storage.empty() && !HasNoHeader(source.format)) {
    return base::InvalidArgument("{}.storage: goes with the format {}", path, RawFormats());
  }
  const bool several = schema.task == Task::kRegression || schema.task == Task::kMultiLabel ||
                       schema.task == Task::kMultiClass;  // a class for each token
  if (schema.label_count > 1 && !(several && source.arrays())) {
    return base::InvalidArgument(
        "{}.count: goes with spec.model.task regression, multiLabel and multiClass, and the formats {}", path,
        ArrayFormats());
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateInputs(const JobSpec& spec) {
  const DataSpec& data = spec.data;
  const SchemaSpec& schema = data.schema;
  MEDLEY_RETURN_IF_ERROR(ValidateFiles("spec.data.train", data.train, schema));
  if (data.validation && data.validation->fraction <= 0) {
    MEDLEY_RETURN_IF_ERROR(ValidateFiles("spec.data.validation", data.validation->source, schema));
  }
  if (data.test) MEDLEY_RETURN_IF_ERROR(ValidateFiles("spec.data.test", *data.test, schema));
  MEDLEY_RETURN_IF_ERROR(ValidateLabels(schema, data.train));
  std::set<std::string_view> names;
  for (size_t i = 0; i < schema.inputs.size(); ++i) {
    const InputSpec& input = schema.inputs[i];
    const std::string path = fmt::format("spec.data.inputs[{}]", i);
    MEDLEY_RETURN_IF_ERROR(ValidateInput(path, input, data.train));
    if (!names.insert(input.name).second) {
      return base::InvalidArgument("{}.name: '{}' is the name of another input", path, input.name);
    }
  }
  return absl::OkStatus();
}

}  // namespace medley::model
