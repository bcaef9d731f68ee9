// Gives a decoded object its stored shape: unknown fields go (or are told), defaults come. Pure.
#pragma once

#include <string>
#include <vector>

#include "localcluster/apiserver/schema.h"

namespace medley::kube::apiserver {

// Removes the fields that the schema does not cover; their paths ("spec.foo") are appended to `unknown`.
void Prune(Json* value, const Schema& schema, const std::string& path, std::vector<std::string>* unknown);

// Fills absent fields that have a default, outermost first; drops nulls that may not be null.
void ApplyDefaults(Json* value, const Schema& schema);

// Built-in kinds: numbers given for quantities become strings; nulls go, as decoding into Go does.
void Normalize(Json* value, const Schema& schema);

}  // namespace medley::kube::apiserver
