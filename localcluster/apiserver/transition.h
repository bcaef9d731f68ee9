// Evaluates the transition rules of a CRD: those of x-kubernetes-validations that name `oldSelf`. They make fields
// immutable.
//
// Of CEL it knows self, oldSelf, fields by name, has(), ==, !, &&, || and parentheses. A rule with anything else is not
// evaluated, and neither are rules without `oldSelf`: the operator checks those itself. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "localcluster/apiserver/api_error.h"
#include "localcluster/apiserver/schema.h"

namespace medley::kube::apiserver {

// Whether the rule holds; nullopt: it is not of the subset. A field that does not exist equals only another one that
// does not exist.
std::optional<bool> Holds(std::string_view rule, const Json& self, const Json& old_self);

// Appends the errors of the rules of `schema` and of its properties, below `path` ("" for the whole object). As in
// Kubernetes, a rule counts only where the value exists before and after the change; values in lists are not compared.
void CheckTransitions(const Json& old, const Json& value, const Schema& schema, const std::string& path,
                      FieldErrors* errors);

}  // namespace medley::kube::apiserver
