#include "common/model/job_bounds.h"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/base/status.h"
#include "common/model/job_schema.h"
#include "common/model/schema_bounds.h"

namespace medley::model {
namespace {

using nlohmann::json;

const json& SchemaAt(const char* pointer) { return JobSchema().at(json::json_pointer(pointer)); }

}  // namespace

absl::Status CheckJobFields(const json& spec) {
  const auto bounds_of = [](const char* part) {
    json schema = JobSchema().at("properties").at(part);
    if (schema.contains("properties")) schema["properties"].erase("volume");  // what it is, only kubelets ask
    return std::pair(part, SchemaBounds(schema));
  };
  static const std::array parts = {bounds_of("model"),    bounds_of("program"),    bounds_of("data"),
                                   bounds_of("training"), bounds_of("checkpoint"), bounds_of("export")};
  for (const auto& [part, bounds] : parts) {
    if (!spec.contains(part)) continue;
    MEDLEY_RETURN_IF_ERROR(bounds.Of(spec.at(part), std::string("spec.") + part, SchemaBounds::Check::kAll));
  }
  return absl::OkStatus();
}

absl::Status CheckPresentJobFields(const json& spec) {
  static const SchemaBounds bounds(JobSchema());
  return bounds.Of(spec, "spec", SchemaBounds::Check::kPresentFields);
}

absl::Status CheckColumn(const std::string& path, int column) {
  static const SchemaBounds bounds(SchemaAt("/properties/data/properties/schema/properties/label/properties/column"));
  return bounds.OfNumber(column, path);
}

int64_t MostNumbersOfInput() {
  return SchemaAt("/properties/data/properties/inputs/items/properties/shape/items/maximum").get<int64_t>();
}

}  // namespace medley::model
