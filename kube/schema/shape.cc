#include "kube/schema/shape.h"

#include <fmt/format.h>

#include "common/base/closest.h"
#include "kube/schema/validate.h"

namespace medley::kube {

namespace {

std::vector<std::string> FieldsOf(const Schema& schema) {
  std::vector<std::string> names;
  const auto properties = schema.json().find("properties");
  if (properties == schema.json().end() || !properties->is_object()) return names;
  for (const auto& [name, node] : properties->items()) names.push_back(name);
  return names;
}

}  // namespace

void Prune(Json* value, const Schema& schema, const std::string& path, std::vector<UnknownField>* unknown) {
  if (!schema) return;
  if (value->is_array()) {
    const Schema items = schema.Items();
    for (size_t i = 0; items && i < value->size(); ++i) {
      Prune(&(*value)[i], items, fmt::format("{}[{}]", path, i), unknown);
    }
    return;
  }
  if (!value->is_object()) return;
  for (auto it = value->begin(); it != value->end();) {
    bool known = true;
    const Schema field = schema.Field(it.key(), &known);
    const bool embedded =
        schema.embedded_resource() && (it.key() == "apiVersion" || it.key() == "kind" || it.key() == "metadata");
    if (!known && !embedded) {
      unknown->push_back({JoinField(path, it.key()), base::DidYouMean(it.key(), FieldsOf(schema))});
      it = value->erase(it);
      continue;
    }
    Prune(&*it, field, JoinField(path, it.key()), unknown);
    ++it;
  }
}

void ApplyDefaults(Json* value, const Schema& schema) {
  if (!schema) return;
  if (value->is_array()) {
    const Schema items = schema.Items();
    for (Json& item : *value) ApplyDefaults(&item, items);
    return;
  }
  if (!value->is_object()) return;
  const auto properties = schema.json().find("properties");
  if (properties != schema.json().end() && properties->is_object()) {
    for (const auto& [name, node] : properties->items()) {
      const Schema field = schema.Sub(node);
      const Json* fallback = field.Default();
      if (fallback == nullptr) continue;
      const auto it = value->find(name);
      if (it == value->end() || (it->is_null() && !field.Flag("nullable"))) {
        (*value)[name] = *fallback;
      }
    }
  }
  for (const auto& [name, field] : value->items()) ApplyDefaults(&field, schema.Field(name));
}

void Normalize(Json* value, const Schema& schema) {
  if (!schema) return;
  if (schema.quantity() && value->is_number()) *value = Dump(*value);
  if (value->is_array()) {
    const Schema items = schema.Items();
    for (Json& item : *value) Normalize(&item, items);
    return;
  }
  if (!value->is_object()) return;
  for (auto it = value->begin(); it != value->end();) {
    if (it->is_null()) {
      it = value->erase(it);
      continue;
    }
    Normalize(&*it, schema.Field(it.key()));
    ++it;
  }
}

}  // namespace medley::kube
