// The types of CEL that a schema gives. Pure.
#pragma once

#include "common/cel/type.h"
#include "kube/object.h"

namespace medley::kube {

// `root`: of a whole object, of whose metadata expressions may name only name and generateName. As in Kubernetes, parts
// that may be anything have no type (null): expressions cannot name them.
cel::TypePtr RuleType(const Json& schema, bool root);

}  // namespace medley::kube
