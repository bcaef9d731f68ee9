#include "common/model/job_schema.h"

#include <nlohmann/json.hpp>

namespace medley::model {
namespace {

constexpr char kJobSchema[] =
#include "common/model/job_schema.inc"  // made by cmake/job_fields.py
    ;

}  // namespace

const nlohmann::json& JobSchema() {
  static const nlohmann::json schema = nlohmann::json::parse(kJobSchema);
  return schema;
}

}  // namespace medley::model
