#include "operator/api/json_reader.h"

#include "common/base/clock.h"

namespace medley::ops {
namespace {

const kube::Json& EmptyObject() {
  static const kube::Json empty = kube::Json::object();
  return empty;
}

}  // namespace

const kube::Json* JsonReader::Find(const char* field) const {
  if (!json_->is_object()) return nullptr;
  const auto found = json_->find(field);
  return found == json_->end() || found->is_null() ? nullptr : &*found;
}

void JsonReader::Fail(const std::string& field, const std::string& want) const {
  if (status_->ok()) *status_ = base::InvalidArgument("{}.{} must be {}", path_, field, want);
}

JsonReader JsonReader::Child(const char* field) const {
  const kube::Json* found = Find(field);
  if (found != nullptr && !found->is_object()) Fail(field, "an object");
  const bool usable = found != nullptr && found->is_object();
  return JsonReader(usable ? *found : EmptyObject(), path_ + "." + field, status_);
}

std::vector<JsonReader> JsonReader::Items(const char* field) const {
  std::vector<JsonReader> items;
  const kube::Json* found = Find(field);
  if (found == nullptr) return items;
  if (!found->is_array()) {
    Fail(field, "a list");
    return items;
  }
  for (size_t i = 0; i < found->size(); ++i) {
    items.push_back(JsonReader((*found)[i], path_ + "." + field + "[" + std::to_string(i) + "]", status_));
  }
  return items;
}

std::string JsonReader::String(const char* field, std::string fallback) const {
  const kube::Json* found = Find(field);
  if (found == nullptr) return fallback;
  if (found->is_string()) return found->get<std::string>();
  Fail(field, "a string");
  return fallback;
}

int64_t JsonReader::Int(const char* field, int64_t fallback) const {
  const kube::Json* found = Find(field);
  if (found == nullptr) return fallback;
  if (found->is_number_integer()) return found->get<int64_t>();
  Fail(field, "an integer");
  return fallback;
}

double JsonReader::Number(const char* field, double fallback) const {
  const kube::Json* found = Find(field);
  if (found == nullptr) return fallback;
  if (found->is_number()) return found->get<double>();
  Fail(field, "a number");
  return fallback;
}

bool JsonReader::Bool(const char* field, bool fallback) const {
  const kube::Json* found = Find(field);
  if (found == nullptr) return fallback;
  if (found->is_boolean()) return found->get<bool>();
  Fail(field, "true or false");
  return fallback;
}

double JsonReader::Seconds(const char* field, double fallback) const {
  const kube::Json* found = Find(field);
  if (found == nullptr) return fallback;
  if (found->is_string()) {
    const auto parsed = base::ParseDuration(found->get_ref<const std::string&>());
    if (parsed.ok()) return base::ToSeconds(*parsed);
  }
  Fail(field, "a duration, as in 5m or 1h30m");
  return fallback;
}

double JsonReader::Quantity(const char* field, double fallback) const {
  const kube::Json* found = Find(field);
  if (found == nullptr) return fallback;
  if (found->is_number()) return found->get<double>();
  if (found->is_string()) {
    const auto parsed = base::ParseQuantity(found->get_ref<const std::string&>());
    if (parsed.ok()) return *parsed;
  }
  Fail(field, "a quantity, as in \"2.5\" or \"16Gi\"");
  return fallback;
}

std::map<std::string, std::string> JsonReader::StringMap(const char* field) const {
  std::map<std::string, std::string> result;
  const kube::Json* found = Find(field);
  if (found == nullptr) return result;
  if (!found->is_object()) {
    Fail(field, "a map");
    return result;
  }
  for (const auto& [key, value] : found->items()) {
    if (value.is_string()) {
      result[key] = value.get<std::string>();
    } else if (value.is_number()) {
      result[key] = value.dump();
    } else {
      Fail(std::string(field) + "." + key, "a string");
    }
  }
  return result;
}

std::vector<std::string> JsonReader::Strings(const char* field) const {
  std::vector<std::string> result;
  const kube::Json* found = Find(field);
  if (found == nullptr) return result;
  if (!found->is_array()) {
    Fail(field, "a list");
    return result;
  }
  for (const kube::Json& item : *found) {
    if (item.is_string()) {
      result.push_back(item.get<std::string>());
    } else {
      Fail(field, "a list of strings");
    }
  }
  return result;
}

kube::Json JsonReader::Raw(const char* field) const {
  const kube::Json* found = Find(field);
  return found == nullptr ? kube::Json::object() : *found;
}

}  // namespace medley::ops
