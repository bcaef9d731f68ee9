// Reads JSON of unknown shape: a missing or wrongly typed member reads as empty. Pure.
#pragma once

#include <string>
#include <string_view>

#include "kube/object.h"

namespace medley::kube {

// The value at a JSON pointer (RFC 6901) such as "/spec/pools/0", or null.
const Json& ValueAt(const Json& json, std::string_view pointer);
// The member, or null.
const Json& GetValue(const Json& object, std::string_view name);
// The member if it is an object (array), otherwise an empty one.
const Json& GetObject(const Json& object, std::string_view name);
const Json& GetArray(const Json& object, std::string_view name);
std::string GetString(const Json& object, std::string_view name);
bool GetBool(const Json& object, std::string_view name, bool otherwise);
int64_t GetInt(const Json& object, std::string_view name, int64_t otherwise);
// The text of a quantity, which may be a JSON string or number.
std::string QuantityText(const Json& value);

}  // namespace medley::kube
