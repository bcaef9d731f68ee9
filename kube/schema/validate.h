// Validates a value against a structural schema, with the messages of the real API server. Pure.
//
// The order of the errors is that of the real server where it has one: it visits the fields of an object in random
// order, we in that of their names.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kube/schema/field_error.h"
#include "kube/schema/schema.h"

namespace medley::kube {

// No more errors are collected than these.
inline constexpr size_t kMaxFieldErrors = 10'000;

// Appends the errors of `value` under `path` ("" for the whole object). `format` is checked for the formats that
// Kubernetes defines. `old`: what an update replaces, or null; values that it does not change are not faulted
// (in lists, only those of type map are compared item by item). Rules are not evaluated here: rules.h.
void ValidateSchema(const Json& value, const Schema& schema, const Json* old, const std::string& path,
                    FieldErrors* errors);

// Appends the duplicates in lists of the types set and map. Values of a wrong type are skipped.
void CheckListTypes(const Json& value, const Schema& schema, const std::string& path, FieldErrors* errors);

// The items of a list of type map by what they have under its keys. Refers to `list`.
class KeyedItems {
 public:
  KeyedItems(const Json& list, std::vector<std::string> keys);
  // The one with the keys of `item`; null: there is none.
  const Json* Find(const Json& item) const;

 private:
  std::vector<std::string> keys_;
  std::map<std::string, const Json*> items_;
};

// Joins "spec" and "a" to "spec.a", and "" and "a" to "a".
std::string JoinField(const std::string& path, std::string_view name);

}  // namespace medley::kube
