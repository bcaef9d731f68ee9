#include "common/model/job_schema.h"

#include <nlohmann/json.hpp>

namespace medley::model {
namespace {

constexpr char kJobSchema[] =
#include "common/model/job_schema.inc"  // made by cmake/job_fields.py
    ;

void VisitPaths(nlohmann::json& value, const nlohmann::json& schema, const std::function<void(std::string&)>& change) {
  if (value.is_string() && schema.value("x-path", false)) {
    change(value.get_ref<std::string&>());
  } else if (value.is_array() && schema.contains("items")) {
    for (nlohmann::json& item : value) VisitPaths(item, schema.at("items"), change);
  } else if (value.is_object()) {
    const auto fields = schema.find("properties"), others = schema.find("additionalProperties");
    for (const auto& [name, field] : value.items()) {
      if (fields != schema.end() && fields->contains(name)) {
        VisitPaths(field, fields->at(name), change);
      } else if (others != schema.end() && others->is_object()) {
        VisitPaths(field, *others, change);
      }
    }
  }
}

}  // namespace

const nlohmann::json& JobSchema() {
  static const nlohmann::json schema = nlohmann::json::parse(kJobSchema);
  return schema;
}

void ForEachPath(nlohmann::json& spec, const std::function<void(std::string&)>& change) {
  VisitPaths(spec, JobSchema(), change);
}

}  // namespace medley::model
