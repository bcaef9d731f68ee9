// Gives a decoded object its stored form: removes unknown fields, or reports them, and sets defaults. Pure.
#pragma once

#include <string>
#include <vector>

#include "kube/schema/schema.h"

namespace medley::kube {

struct UnknownField {
  std::string path;  // "spec.foo"
  std::string hint;  // "; did you mean `food`?", or empty
};

// Removes the fields that the schema does not cover and appends them to `unknown`.
void Prune(Json* value, const Schema& schema, const std::string& path, std::vector<UnknownField>* unknown);

// Sets absent fields to their defaults, outermost first. Removes nulls where null is not allowed.
void ApplyDefaults(Json* value, const Schema& schema);

// For built-in kinds: converts numbers to strings in quantities and removes nulls, as decoding in Go does.
void Normalize(Json* value, const Schema& schema);

}  // namespace medley::kube
