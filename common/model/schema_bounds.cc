#include "common/model/schema_bounds.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <re2/re2.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/base/status.h"

namespace medley::model {
namespace {

using nlohmann::json;

constexpr size_t kLongestMapKey = 1024;  // more than any name of Kubernetes

template <typename T>
void ReadBound(const json& schema, const char* keyword, std::optional<T>& bound) {
  if (schema.contains(keyword)) bound = schema[keyword].get<T>();
}

std::string Short(const json& value) {
  if (value.is_structured()) return value.is_array() ? "a list" : "an object";
  if (value.is_number_float() && !std::isfinite(value.get<double>())) return fmt::format("{}", value.get<double>());
  const std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  return text.size() > 60 ? text.substr(0, 57) + "..." : text;
}

size_t Characters(const std::string& text) {
  const auto begins_character = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; };
  return static_cast<size_t>(std::ranges::count_if(text, begins_character));
}

absl::Status Wrong(const std::string& path, const std::string& want, const json& value) {
  return base::InvalidArgument("{}: must be {}, is {}", path, want, Short(value));
}

// "at least 1 and at most 9", for messages.
template <typename T>
std::string Range(const std::optional<T>& low, const std::optional<T>& high, bool above = false, bool below = false) {
  std::string words = low ? fmt::format("{} {}", above ? "greater than" : "at least", *low) : "";
  if (!high) return words;
  return words + fmt::format("{}{} {}", words.empty() ? "" : " and ", below ? "less than" : "at most", *high);
}

absl::Status CheckCount(const std::optional<size_t>& low, const std::optional<size_t>& high, size_t count,
                        const std::string& path, const char* what) {
  if ((!low || count >= *low) && (!high || count <= *high)) return absl::OkStatus();
  return base::InvalidArgument("{}: must have {} {}, has {}", path, Range(low, high), what, count);
}

}  // namespace

SchemaBounds::SchemaBounds(const json& schema)
    : type_(schema.value("type", "")),
      int_or_string_(schema.value("x-kubernetes-int-or-string", false)),
      above_(schema.value("exclusiveMinimum", false)),
      below_(schema.value("exclusiveMaximum", false)),
      required_(schema.value("required", std::vector<std::string>())) {
  ReadBound(schema, "minimum", minimum_);
  ReadBound(schema, "maximum", maximum_);
  ReadBound(schema, "minLength", min_length_);
  ReadBound(schema, "maxLength", max_length_);
  ReadBound(schema, "minItems", min_items_);
  ReadBound(schema, "maxItems", max_items_);
  ReadBound(schema, "minProperties", min_fields_);
  ReadBound(schema, "maxProperties", max_fields_);
  if (type_ == "string") names_ = schema.value("enum", std::vector<std::string>());
  if (schema.contains("pattern")) {
    pattern_ = std::make_unique<const RE2>(schema["pattern"].get<std::string>());
    MEDLEY_CHECK(pattern_->ok(), "a pattern of the schema is broken: " + pattern_->pattern());
  }
  if (schema.contains("properties")) {
    for (const auto& [name, field] : schema["properties"].items()) fields_.emplace(name, SchemaBounds(field));
  }
  if (schema.contains("items")) items_ = std::make_unique<const SchemaBounds>(schema["items"]);
  if (schema.contains("additionalProperties") && schema["additionalProperties"].is_object()) {
    values_ = std::make_unique<const SchemaBounds>(schema["additionalProperties"]);
  }
}

SchemaBounds::SchemaBounds(SchemaBounds&&) noexcept = default;
SchemaBounds::~SchemaBounds() = default;

absl::Status SchemaBounds::OfType(const json& value, const std::string& path) const {
  if (int_or_string_) {
    return value.is_string() || value.is_number_integer() ? absl::OkStatus()
                                                          : Wrong(path, "an integer or a string", value);
  }
  const std::pair<const char*, bool> types[] = {
      {"object", value.is_object()},          {"array", value.is_array()},
      {"string", value.is_string()},          {"boolean", value.is_boolean()},
      {"integer", value.is_number_integer()}, {"number", value.is_number() && std::isfinite(value.get<double>())},
  };
  for (const auto& [type, holds] : types) {
    if (type_ == type && !holds) return Wrong(path, "of type " + type_, value);
  }
  return absl::OkStatus();
}

absl::Status SchemaBounds::OfNumber(double value, const std::string& path) const {
  const bool enough = !minimum_ || (above_ ? value > *minimum_ : value >= *minimum_);
  const bool fits = !maximum_ || (below_ ? value < *maximum_ : value <= *maximum_);
  if (enough && fits) return absl::OkStatus();
  constexpr double kExact = 9007199254740992;  // 2^53
  const bool whole = value == std::floor(value) && std::abs(value) <= kExact;
  return Wrong(path, Range(minimum_, maximum_, above_, below_),
               whole ? json(static_cast<int64_t>(value)) : json(value));
}

absl::Status SchemaBounds::OfText(const std::string& text, const std::string& path, Check check) const {
  if (!names_.empty()) {
    if (check != Check::kAll || std::ranges::find(names_, text) != names_.end()) return absl::OkStatus();
    return base::InvalidArgument("{}: '{}' is not one of {}", path, text, fmt::join(names_, ", "));
  }
  MEDLEY_RETURN_IF_ERROR(CheckCount(min_length_, max_length_, Characters(text), path, "characters"));
  if (pattern_ == nullptr || RE2::PartialMatch(text, *pattern_)) return absl::OkStatus();
  return Wrong(path, "of the form " + pattern_->pattern(), text);
}

absl::Status SchemaBounds::OfFields(const json& object, const std::string& path, Check check) const {
  for (const std::string& name : required_) {
    if (check == Check::kAll && !object.contains(name)) return base::InvalidArgument("{}.{}: is required", path, name);
  }
  MEDLEY_RETURN_IF_ERROR(CheckCount(min_fields_, max_fields_, object.size(), path, "fields"));
  for (const auto& [name, field] : object.items()) {
    if (const auto known = fields_.find(name); known != fields_.end()) {
      MEDLEY_RETURN_IF_ERROR(known->second.Of(field, path + "." + name, check));
    } else if (values_ != nullptr) {
      if (name.size() > kLongestMapKey) {
        return base::InvalidArgument("{}: a name has {} bytes, at most {} are allowed", path, name.size(),
                                     kLongestMapKey);
      }
      if (field.is_null()) return Wrong(path + "." + name, "of type " + values_->type_, field);
      MEDLEY_RETURN_IF_ERROR(values_->Of(field, path + "." + name, check));
    }
  }
  return absl::OkStatus();
}

absl::Status SchemaBounds::OfItems(const json& list, const std::string& path, Check check) const {
  MEDLEY_RETURN_IF_ERROR(CheckCount(min_items_, max_items_, list.size(), path, "items"));
  if (items_ == nullptr) return absl::OkStatus();
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string item = fmt::format("{}[{}]", path, i);
    if (list[i].is_null()) return Wrong(item, "of type " + items_->type_, list[i]);
    MEDLEY_RETURN_IF_ERROR(items_->Of(list[i], item, check));
  }
  return absl::OkStatus();
}

absl::Status SchemaBounds::Of(const json& value, const std::string& path, Check check) const {
  if (value.is_null()) return absl::OkStatus();
  MEDLEY_RETURN_IF_ERROR(OfType(value, path));
  if (value.is_number()) return OfNumber(value.get<double>(), path);
  if (value.is_string()) return OfText(value.get_ref<const std::string&>(), path, check);
  if (value.is_object()) return OfFields(value, path, check);
  if (value.is_array()) return OfItems(value, path, check);
  return absl::OkStatus();
}

}  // namespace medley::model
