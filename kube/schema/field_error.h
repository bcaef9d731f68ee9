// What is wrong with a field, in the words of the Kubernetes API server. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kube/object.h"

namespace medley::kube {

// `what` is the text after the field: "Invalid value: 0: must be positive".
struct FieldError {
  std::string reason;  // FieldValueInvalid, FieldValueRequired, ...
  std::string field;   // "spec.a[0]"; "<nil>": the whole object
  std::string what;
};
using FieldErrors = std::vector<FieldError>;

FieldError InvalidValue(std::string_view field, const Json& value, std::string_view what);
FieldError RequiredValue(std::string_view field, std::string_view what = "");
FieldError Forbidden(std::string_view field, std::string_view what);

// A value as the API server writes it: a text in quotes, everything else as Go does.
std::string ShownValue(const Json& value);

// Errors after which the API server does not evaluate rules: what is not of its schema may be nothing that a rule can
// read.
bool StopsRules(const FieldErrors& errors);
// What it says then, as the last error.
FieldError RulesNotChecked();

}  // namespace medley::kube
