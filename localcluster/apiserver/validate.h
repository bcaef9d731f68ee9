// Validates a value against a structural schema, with the messages of the real API server.
//
// Pure. CEL rules are not evaluated here; transition.h evaluates some.
// `format` is checked for the formats that Kubernetes defines.
#pragma once

#include <string>

#include "localcluster/apiserver/api_error.h"
#include "localcluster/apiserver/schema.h"

namespace medley::kube::apiserver {

// Appends the errors of `value` under `path` ("" for the whole object), at most `kMaxFieldErrors` of them.
inline constexpr size_t kMaxFieldErrors = 64;
void Validate(const Json& value, const Schema& schema, const std::string& path, FieldErrors* errors);

// True if `text` has the format ("date-time", "ipv4", "duration", ...). Unknown formats accept every text.
bool HasFormat(std::string_view format, const std::string& text);

// Joins "spec" and "a" to "spec.a", and "" and "a" to "a".
std::string JoinField(const std::string& path, std::string_view name);

}  // namespace medley::kube::apiserver
