#include "kube/schema/rule_types.h"

#include "kube/json_access.h"

namespace medley::kube {
namespace {

using cel::Kind;
using cel::Type;
using cel::TypePtr;

bool IsSet(const Json& schema, const char* keyword) {
  const auto it = schema.find(keyword);
  return it != schema.end() && *it == true;
}

const Json* PartOf(const Json& schema, const char* keyword) {
  const auto it = schema.find(keyword);
  return it != schema.end() && it->is_object() ? &*it : nullptr;
}

void AddField(Type& type, const std::string& name, TypePtr field) {
  const std::string escaped = cel::EscapeName(name);
  if (!escaped.empty() && field != nullptr) type.fields[escaped] = {name, std::move(field)};
}

TypePtr MetadataType() {
  Type metadata{.kind = Kind::kObject};
  AddField(metadata, "name", cel::Simple(Kind::kString));
  AddField(metadata, "generateName", cel::Simple(Kind::kString));
  return std::make_shared<const Type>(std::move(metadata));
}

TypePtr ObjectType(const Json& schema, bool root) {
  Type type{.kind = Kind::kObject};
  const Json* properties = PartOf(schema, "properties");
  if (properties == nullptr && !root) {
    if (const Json* values = PartOf(schema, "additionalProperties")) {
      type.kind = Kind::kMap;
      type.element = RuleType(*values, false);
    }
    return std::make_shared<const Type>(std::move(type));
  }
  if (properties != nullptr) {
    for (const auto& [name, field] : properties->items()) {
      if (field.is_object()) AddField(type, name, RuleType(field, IsSet(field, "x-kubernetes-embedded-resource")));
    }
  }
  if (root) {
    AddField(type, "apiVersion", cel::Simple(Kind::kString));
    AddField(type, "kind", cel::Simple(Kind::kString));
    AddField(type, "metadata", MetadataType());
  }
  return std::make_shared<const Type>(std::move(type));
}

TypePtr ArrayType(const Json& schema) {
  const Json* items = PartOf(schema, "items");
  TypePtr element = items == nullptr ? nullptr : RuleType(*items, false);
  if (element == nullptr) return nullptr;
  Type type{.kind = Kind::kList, .element = std::move(element)};
  const std::string order = GetString(schema, "x-kubernetes-list-type");
  if (order == "set") type.order = Type::Order::kSet;
  const auto keys = schema.find("x-kubernetes-list-map-keys");
  if (order == "map" && keys != schema.end() && keys->is_array()) {
    type.order = Type::Order::kKeyed;
    for (const Json& key : *keys) {
      if (key.is_string()) type.keys.push_back(key.get<std::string>());
    }
  }
  return std::make_shared<const Type>(std::move(type));
}

TypePtr StringType(const Json& schema) {
  const std::string format = GetString(schema, "format");
  if (format == "duration") return cel::Simple(Kind::kDuration);
  if (format == "date" || format == "date-time") return cel::Simple(Kind::kTimestamp);
  if (format == "byte") return cel::Simple(Kind::kBytes);
  return cel::Simple(Kind::kString);
}

}  // namespace

TypePtr RuleType(const Json& schema, bool root) {
  if (!schema.is_object()) return nullptr;
  if (IsSet(schema, "x-kubernetes-int-or-string")) return cel::Simple(Kind::kDyn);
  const std::string type = GetString(schema, "type");
  if (type == "object") return ObjectType(schema, root);
  if (type == "array") return ArrayType(schema);
  if (type == "string") return StringType(schema);
  if (type == "number") return cel::Simple(Kind::kDouble);
  if (type == "integer") return cel::Simple(Kind::kInt);
  if (type == "boolean") return cel::Simple(Kind::kBool);
  return nullptr;
}

}  // namespace medley::kube
