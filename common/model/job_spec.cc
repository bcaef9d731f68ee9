#include "common/model/job_spec.h"

#include <nlohmann/json.hpp>

#include "common/base/status.h"
#include "common/model/job_bounds.h"
#include "common/model/read_data.h"
#include "common/model/read_job_fields.h"

namespace medley::model {
namespace {

void ReadTask(const Reader& model, Task& task) {
  task = TaskNamed(model.String("task", TaskName(task))).value_or(task);
}

}  // namespace

bool ModelSpec::imported() const { return !exported_uri.empty() || !torchscript_uri.empty(); }

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

namespace {

void ReadSpec(const Reader& reader, JobSpec& spec) {
  ReadCheckpointSpec(reader.Child("checkpoint"), spec.checkpoint);
  if (reader.Has("program")) {
    ReadProgramSpec(reader.Child("program"), spec.program.emplace());
    spec.training.batch_size = spec.program->samples_per_step;
    return;
  }
  ReadModelSpec(reader.Child("model"), spec.model);
  ReadTask(reader.Child("model"), spec.data.schema.task);
  ReadData(reader.Child("data"), spec.data);
  ReadTrainingSpec(reader.Child("training"), spec.training);
  spec.export_best = reader.String("export", "Best") == "Best";
}

}  // namespace

absl::StatusOr<JobSpec> ParseJobSpec(std::string_view text) {
  auto tree = document::ParseJson(text);
  if (!tree.ok()) return base::Annotate(tree.status(), "spec");
  if (!tree->is_object()) return base::InvalidArgument("spec: must be an object");
  JobSpec spec;
  const Reader reader(*tree, "spec");  // which has fields of the operator's too
  ReadSpec(reader, spec);
  MEDLEY_RETURN_IF_ERROR(reader.status());
  MEDLEY_RETURN_IF_ERROR(CheckJobFields(*tree));
  return spec;
}

}  // namespace medley::model
