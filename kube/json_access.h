// Reading JSON of which nothing is sure: a missing or wrongly typed member reads as empty. Pure.
#pragma once

#include <string>
#include <string_view>

#include "kube/object.h"

namespace medley::kube {

// The member, or a null value.
const Json& GetValue(const Json& object, std::string_view name);
// The member if it is an object (array), else an empty one.
const Json& GetObject(const Json& object, std::string_view name);
const Json& GetArray(const Json& object, std::string_view name);
std::string GetString(const Json& object, std::string_view name);
bool GetBool(const Json& object, std::string_view name, bool otherwise);
int64_t GetInt(const Json& object, std::string_view name, int64_t otherwise);
// A quantity may be written as a string or a number.
std::string QuantityText(const Json& value);

}  // namespace medley::kube
