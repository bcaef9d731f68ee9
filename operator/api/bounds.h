// The bounds of the CRDs' schemas, checked again by the operator: an object may have been stored under an older CRD, or
// by an API server whose validation is off. The schemas are those of deploy/crds, so that no bound is written twice.
// Pure and thread-safe.
#pragma once

#include <absl/status/status.h>

#include "kube/object.h"

namespace medley::ops {

// For a spec. A schema cannot bound what Kubernetes defines (volume sources, the pod template), so the whole is
// bounded.
inline constexpr int kMaxSpecDepth = 32;            // nested objects and lists
inline constexpr size_t kMaxSpecBytes = 512 << 10;  // about: of all names and values together
// For a duration. The schemas' rules are narrower for most of them.
inline constexpr double kLongestSeconds = 10.0 * 365 * 24 * 3600;

// Whether the spec is small enough to be copied, stored and given to pods. Must be called before anything else reads
// it. Errors: InvalidArgument, a sentence.
absl::Status CheckSize(const kube::Json& spec);

// Types, minimum, maximum, length, number of items and of fields, and patterns of every field of the spec. A field that
// is absent or null is not checked, nor are required fields and enumerations, whose readers refuse or default them.
// Errors: InvalidArgument for the first violation: "spec.limit: must be at most 1000000, is 2000000".
absl::Status CheckJobBounds(const kube::Json& spec);
absl::Status CheckPoolBounds(const kube::Json& spec);

}  // namespace medley::ops
