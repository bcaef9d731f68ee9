#include "kube/json_access.h"

#include <algorithm>
#include <charconv>

namespace medley::kube {
namespace {

// Decodes the escapes of a JSON pointer (RFC 6901).
std::string Unescape(std::string_view token) {
  std::string out;
  out.reserve(token.size());
  for (size_t i = 0; i < token.size(); ++i) {
    if (token[i] == '~' && i + 1 < token.size() && (token[i + 1] == '0' || token[i + 1] == '1')) {
      out += token[++i] == '0' ? '~' : '/';
    } else {
      out += token[i];
    }
  }
  return out;
}

const Json* Child(const Json& value, std::string_view token) {
  if (value.is_object()) {
    const auto it = token.find('~') == std::string_view::npos ? value.find(token) : value.find(Unescape(token));
    return it == value.end() ? nullptr : &*it;
  }
  if (value.is_array()) {
    size_t index = 0;
    const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), index);
    if (error != std::errc() || end != token.data() + token.size()) return nullptr;
    return index < value.size() ? &value[index] : nullptr;
  }
  return nullptr;
}

}  // namespace

const Json& ValueAt(const Json& json, std::string_view pointer) {
  static const Json kNull;
  const Json* value = &json;
  while (!pointer.empty()) {
    if (pointer.front() != '/') return kNull;
    pointer.remove_prefix(1);
    const size_t end = std::min(pointer.find('/'), pointer.size());
    value = Child(*value, pointer.substr(0, end));
    if (value == nullptr) return kNull;
    pointer.remove_prefix(end);
  }
  return *value;
}

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
