#include "common/model/job_spec.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "common/base/status.h"
#include "common/model/field_rules.h"
#include "common/model/read_data.h"
#include "common/model/read_job_fields.h"

namespace medley::model {
namespace {

void ReadTask(const Reader& model, Task& task) {
  task = TaskNamed(ReadChoice(model, "task", TaskName(task))).value_or(task);
}

}  // namespace

bool ModelSpec::imported() const { return !exported_uri.empty() || !torchscript_uri.empty(); }

std::string ReadChoice(const Reader& reader, std::string_view field, std::string otherwise) {
  const std::string value = reader.String(field, otherwise), path = fmt::format("{}.{}", reader.path(), field);
  const absl::Status known = OneOf(path, value);
  if (known.ok()) return value;
  reader.Fail(field, base::Message(known).substr(path.size() + 2));
  return otherwise;
}

void ReadSeconds(const Reader& reader, std::string_view field, double& out) { out = reader.Seconds(field, out); }

void ReadBytes(const Reader& reader, std::string_view field, double& out) {
  if (!reader.Has(field)) return;
  const std::string text = reader.String(field);
  const size_t digits = text.find_first_not_of("0123456789");
  const bool fits = digits != std::string::npos && digits > 0 && digits <= 12 && text[0] != '0';
  for (const auto& [suffix, factor] :
       {std::pair("Mi", 1LL << 20), std::pair("Gi", 1LL << 30), std::pair("Ti", 1LL << 40)}) {
    if (!fits || text.substr(digits) != suffix) continue;
    out = std::stod(text.substr(0, digits)) * static_cast<double>(factor);
    return;
  }
  reader.Fail(field, fmt::format("must be a number of bytes such as 2Gi (Mi, Gi or Ti), is '{}'", text));
}

void ReadNumbers(const Reader& reader, std::string_view field, std::map<std::string, double>& out) {
  const nlohmann::json numbers = reader.Raw(field);
  if (!numbers.is_object()) return reader.Fail(field, "must be an object of numbers");
  for (const auto& [name, number] : numbers.items()) {
    if (!number.is_number()) return reader.Fail(field, "the value of '" + name + "' must be a number");
    out[name] = number.get<double>();
  }
}

#include "common/model/job_fields.inc"  // Read* of the structs of job_fields.h, made by cmake/job_fields.py

absl::StatusOr<JobSpec> ParseJobSpec(std::string_view text) {
  auto tree = document::ParseJson(text);
  if (!tree.ok()) return base::Annotate(tree.status(), "spec");
  if (!tree->is_object()) return base::InvalidArgument("spec: must be an object");
  JobSpec spec;
  const Reader reader(*tree, "spec");  // which has fields of the operator's too
  if (reader.Has("program")) {
    ReadProgramSpec(reader.Child("program"), spec.program.emplace());
    ReadCheckpointSpec(reader.Child("checkpoint"), spec.checkpoint);
    spec.training.batch_size = spec.program->samples_per_step;
    MEDLEY_RETURN_IF_ERROR(reader.status());
    return spec;
  }
  ReadModelSpec(reader.Child("model"), spec.model);
  ReadTask(reader.Child("model"), spec.data.schema.task);
  ReadData(reader.Child("data"), spec.data);
  ReadTrainingSpec(reader.Child("training"), spec.training);
  ReadCheckpointSpec(reader.Child("checkpoint"), spec.checkpoint);
  spec.export_best = ReadChoice(reader, "export", "Best") == "Best";
  MEDLEY_RETURN_IF_ERROR(reader.status());
  return spec;
}

}  // namespace medley::model
