// What an object must meet before it is stored.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "kube/json_access.h"
#include "kube/schema/validate.h"
#include "localcluster/apiserver/api_error.h"
#include "localcluster/apiserver/builtin.h"
#include "localcluster/apiserver/rest.h"

namespace medley::localcluster::apiserver {
namespace {

// As programs in Go print a value of JSON.
std::string Printed(const kube::Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_null()) return "<nil>";
  if (!value.is_structured()) return kube::ShownValue(value);
  std::string text;
  for (const auto& [name, item] : value.items()) {
    text += (text.empty() ? "" : " ") + (value.is_object() ? name + ":" : "") + Printed(item);
  }
  return (value.is_object() ? "map[" : "[") + text + "]";
}

const char* GoTypeName(const kube::Json& value) {
  if (value.is_object()) return "map[string]interface {}";
  if (value.is_array()) return "[]interface {}";
  if (value.is_string()) return "string";
  if (value.is_boolean()) return "bool";
  if (value.is_null()) return "<nil>";
  return value.is_number_float() ? "float64" : "int64";
}

// The number at ".spec.a" or ".status.a", to which scale refers.
void CheckReplicas(const kube::Json& object, const std::string& path, kube::FieldErrors* errors) {
  const kube::Json* at = &object;
  for (size_t from = 1; from <= path.size();) {
    const size_t end = std::min(path.find('.', from), path.size());
    if (!at->is_object()) {
      errors->push_back(kube::InvalidValue(path, 0,
                                           fmt::format("{} accessor error: {} is of the type {}, expected "
                                                       "map[string]interface{{}}",
                                                       path.substr(0, end), Printed(*at), GoTypeName(*at))));
      return;
    }
    const auto found = at->find(path.substr(from, end - from));
    if (found == at->end()) return;
    at = &*found;
    from = end + 1;
  }
  if (path.empty()) return;
  if (!at->is_number_integer()) {
    errors->push_back(kube::InvalidValue(
        path, 0,
        fmt::format("{} accessor error: {} is of the type {}, expected int64", path, Printed(*at), GoTypeName(*at))));
    return;
  }
  const auto number = at->get<int64_t>();
  if (number < 0) errors->push_back(kube::InvalidValue(path, number, "should be a non-negative integer"));
  if (number > std::numeric_limits<int32_t>::max()) {
    errors->push_back(kube::InvalidValue(
        path, number, fmt::format("should be less than or equal to {}", std::numeric_limits<int32_t>::max())));
  }
}

// In the order of the real server.
void CheckCustom(const ResourceInfo& info, const kube::Json* old, const kube::Json& object, kube::FieldErrors* errors) {
  CheckReplicas(object, info.spec_replicas, errors);
  CheckReplicas(object, info.status_replicas, errors);
  kube::FieldErrors old_duplicates;
  if (old != nullptr) kube::CheckListTypes(*old, info.schema, "", &old_duplicates);
  if (old_duplicates.empty()) kube::CheckListTypes(object, info.schema, "", errors);
  if (info.rules == nullptr) return;
  if (kube::StopsRules(*errors)) {
    errors->push_back(kube::RulesNotChecked());
  } else {
    info.rules->Check(object, old, errors);
  }
}

}  // namespace

absl::Status Rest::Check(const ResourceInfo& info, const kube::Json* old, const kube::Json& object) const {
  kube::FieldErrors errors;
  const std::string name = kube::GetString(object["metadata"], "name");
  if (old == nullptr) ValidateName(info, name, &errors);
  ValidateMetadata(object["metadata"], &errors);
  if (info.builtin) {
    kube::ValidateSchema(object, info.schema, nullptr, "", &errors);
    kube::CheckListTypes(object, info.schema, "", &errors);
    if (errors.empty()) ValidateBuiltin(info, old, object, &errors);
  } else {
    kube::ValidateSchema(object, info.schema, old, "", &errors);
    CheckCustom(info, old, object, &errors);
  }
  if (errors.empty()) return absl::OkStatus();
  return InvalidError(info.resource, name, errors);
}

}  // namespace medley::localcluster::apiserver
