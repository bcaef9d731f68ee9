#include "operator/api/bounds.h"

#include <re2/re2.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "common/base/status.h"
#include "common/document/parse.h"
#include "operator/api/crds.h"

namespace medley::ops {
namespace {

using kube::Json;

constexpr size_t kValueBytes = 8;        // counted for a value beside its text
constexpr size_t kLongestMapKey = 1024;  // more than any name of Kubernetes

// The part of a schema that bounds a value.
struct Bounds {
  explicit Bounds(const Json& schema);

  std::string type;  // empty: any
  bool int_or_string = false;
  std::optional<double> minimum, maximum;
  std::optional<size_t> min_length, max_length, min_items, max_items, min_fields, max_fields;
  std::unique_ptr<const RE2> pattern;
  std::map<std::string, Bounds, std::less<>> fields;
  std::unique_ptr<const Bounds> items, values;  // of a list; of a map
};

template <typename T>
void ReadBound(const Json& schema, const char* keyword, std::optional<T>& bound) {
  if (schema.contains(keyword)) bound = schema[keyword].get<T>();
}

Bounds::Bounds(const Json& schema)
    : type(schema.value("type", "")), int_or_string(schema.value("x-kubernetes-int-or-string", false)) {
  ReadBound(schema, "minimum", minimum);
  ReadBound(schema, "maximum", maximum);
  ReadBound(schema, "minLength", min_length);
  ReadBound(schema, "maxLength", max_length);
  ReadBound(schema, "minItems", min_items);
  ReadBound(schema, "maxItems", max_items);
  ReadBound(schema, "minProperties", min_fields);
  ReadBound(schema, "maxProperties", max_fields);
  if (schema.contains("pattern")) {
    pattern = std::make_unique<const RE2>(schema["pattern"].get<std::string>());
    MEDLEY_CHECK(pattern->ok(), "a pattern of the CRDs is broken: " + pattern->pattern());
  }
  if (schema.contains("properties")) {
    for (const auto& [name, field] : schema["properties"].items()) fields.emplace(name, Bounds(field));
  }
  if (schema.contains("items")) items = std::make_unique<const Bounds>(schema["items"]);
  if (schema.contains("additionalProperties") && schema["additionalProperties"].is_object()) {
    values = std::make_unique<const Bounds>(schema["additionalProperties"]);
  }
}

Bounds SpecOf(std::string_view file) {
  for (const auto& [name, text] : BundledCrds()) {
    if (name != file) continue;
    const auto crd = document::Parse(text);
    MEDLEY_CHECK(crd.ok(), base::ToString(crd.status()));
    return Bounds(crd->at(nlohmann::json::json_pointer("/spec/versions/0/schema/openAPIV3Schema/properties/spec")));
  }
  MEDLEY_CHECK(false, "no such CRD is bundled");
}

std::string Short(const Json& value) {
  if (value.is_structured()) return value.is_array() ? "a list" : "an object";
  const std::string text = kube::Dump(value);
  return text.size() > 60 ? text.substr(0, 57) + "..." : text;
}

size_t Characters(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

absl::Status Wrong(const std::string& path, const std::string& want, const Json& value) {
  return base::InvalidArgument("{}: must be {}, is {}", path, want, Short(value));
}

absl::Status CheckType(const Bounds& bounds, const Json& value, const std::string& path) {
  if (bounds.int_or_string) {
    return value.is_string() || value.is_number_integer() ? absl::OkStatus()
                                                          : Wrong(path, "an integer or a string", value);
  }
  const std::pair<const char*, bool> types[] = {
      {"object", value.is_object()},          {"array", value.is_array()},
      {"string", value.is_string()},          {"boolean", value.is_boolean()},
      {"integer", value.is_number_integer()}, {"number", value.is_number() && std::isfinite(value.get<double>())},
  };
  for (const auto& [type, holds] : types) {
    if (bounds.type == type && !holds) return Wrong(path, "of type " + bounds.type, value);
  }
  return absl::OkStatus();
}

// "at least 1 and at most 9", for messages.
template <typename T>
std::string Range(const std::optional<T>& low, const std::optional<T>& high) {
  std::string words = low ? fmt::format("at least {}", *low) : "";
  if (high) words += fmt::format("{}at most {}", words.empty() ? "" : " and ", *high);
  return words;
}

absl::Status CheckCount(const std::optional<size_t>& low, const std::optional<size_t>& high, size_t count,
                        const std::string& path, const char* what) {
  if ((!low || count >= *low) && (!high || count <= *high)) return absl::OkStatus();
  return base::InvalidArgument("{}: must have {} {}, has {}", path, Range(low, high), what, count);
}

absl::Status CheckNumber(const Bounds& bounds, const Json& value, const std::string& path) {
  const auto number = value.get<double>();
  if ((!bounds.minimum || number >= *bounds.minimum) && (!bounds.maximum || number <= *bounds.maximum)) {
    return absl::OkStatus();
  }
  return Wrong(path, Range(bounds.minimum, bounds.maximum), value);
}

absl::Status CheckText(const Bounds& bounds, const std::string& text, const std::string& path) {
  MEDLEY_RETURN_IF_ERROR(CheckCount(bounds.min_length, bounds.max_length, Characters(text), path, "characters"));
  if (bounds.pattern == nullptr || RE2::PartialMatch(text, *bounds.pattern)) return absl::OkStatus();
  return Wrong(path, "of the form " + bounds.pattern->pattern(), text);
}

absl::Status Check(const Bounds& bounds, const Json& value, const std::string& path);

absl::Status CheckFields(const Bounds& bounds, const Json& object, const std::string& path) {
  MEDLEY_RETURN_IF_ERROR(CheckCount(bounds.min_fields, bounds.max_fields, object.size(), path, "fields"));
  for (const auto& [name, field] : object.items()) {
    if (const auto known = bounds.fields.find(name); known != bounds.fields.end()) {
      MEDLEY_RETURN_IF_ERROR(Check(known->second, field, path + "." + name));
    } else if (bounds.values != nullptr) {
      if (name.size() > kLongestMapKey) {
        return base::InvalidArgument("{}: a name has {} bytes, at most {} are allowed", path, name.size(),
                                     kLongestMapKey);
      }
      if (field.is_null()) return Wrong(path + "." + name, "of type " + bounds.values->type, field);
      MEDLEY_RETURN_IF_ERROR(Check(*bounds.values, field, path + "." + name));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckItems(const Bounds& bounds, const Json& list, const std::string& path) {
  MEDLEY_RETURN_IF_ERROR(CheckCount(bounds.min_items, bounds.max_items, list.size(), path, "items"));
  if (bounds.items == nullptr) return absl::OkStatus();
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string item = fmt::format("{}[{}]", path, i);
    if (list[i].is_null()) return Wrong(item, "of type " + bounds.items->type, list[i]);
    MEDLEY_RETURN_IF_ERROR(Check(*bounds.items, list[i], item));
  }
  return absl::OkStatus();
}

absl::Status Check(const Bounds& bounds, const Json& value, const std::string& path) {
  if (value.is_null()) return absl::OkStatus();
  MEDLEY_RETURN_IF_ERROR(CheckType(bounds, value, path));
  if (value.is_number()) return CheckNumber(bounds, value, path);
  if (value.is_string()) return CheckText(bounds, value.get_ref<const std::string&>(), path);
  if (value.is_object()) return CheckFields(bounds, value, path);
  if (value.is_array()) return CheckItems(bounds, value, path);
  return absl::OkStatus();
}

// Adds what `value` takes to `bytes`; stops where a limit is passed.
absl::Status Measure(const Json& value, int depth, size_t& bytes) {
  if (depth > kMaxSpecDepth) {
    return base::InvalidArgument("spec: objects and lists are nested more than {} deep", kMaxSpecDepth);
  }
  bytes += kValueBytes + (value.is_string() ? value.get_ref<const std::string&>().size() : 0);
  if (bytes > kMaxSpecBytes) return base::InvalidArgument("spec: is larger than {} KiB", kMaxSpecBytes >> 10);
  if (value.is_object()) {
    for (const auto& [name, field] : value.items()) {
      bytes += name.size();
      MEDLEY_RETURN_IF_ERROR(Measure(field, depth + 1, bytes));
    }
  } else if (value.is_array()) {
    for (const Json& item : value) MEDLEY_RETURN_IF_ERROR(Measure(item, depth + 1, bytes));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckSize(const Json& spec) {
  size_t bytes = 0;
  return Measure(spec, 0, bytes);
}

absl::Status CheckJobBounds(const Json& spec) {
  static const Bounds bounds = SpecOf("trainingjobs.yaml");
  return Check(bounds, spec, "spec");
}

absl::Status CheckPoolBounds(const Json& spec) {
  static const Bounds bounds = SpecOf("resourcepools.yaml");
  return Check(bounds, spec, "spec");
}

}  // namespace medley::ops
