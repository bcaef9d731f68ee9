#include "kube/json_access.h"

namespace medley::kube {

const Json& GetValue(const Json& object, std::string_view name) {
  static const Json kNull;
  if (!object.is_object()) return kNull;
  const auto it = object.find(std::string(name));
  return it == object.end() ? kNull : *it;
}

const Json& GetObject(const Json& object, std::string_view name) {
  static const Json kEmpty = Json::object();
  const Json& value = GetValue(object, name);
  return value.is_object() ? value : kEmpty;
}

const Json& GetArray(const Json& object, std::string_view name) {
  static const Json kEmpty = Json::array();
  const Json& value = GetValue(object, name);
  return value.is_array() ? value : kEmpty;
}

std::string GetString(const Json& object, std::string_view name) {
  const Json& value = GetValue(object, name);
  return value.is_string() ? value.get<std::string>() : "";
}

bool GetBool(const Json& object, std::string_view name, bool otherwise) {
  const Json& value = GetValue(object, name);
  return value.is_boolean() ? value.get<bool>() : otherwise;
}

int64_t GetInt(const Json& object, std::string_view name, int64_t otherwise) {
  const Json& value = GetValue(object, name);
  return value.is_number() ? value.get<int64_t>() : otherwise;
}

std::string QuantityText(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_number() ? value.dump() : "";
}

}  // namespace medley::kube
