// The credentials of a job, made of the operator's keys. Every operator with the same keys makes the same, for a job
// with the same namespace, name, UID and time of creation: so none needs to read the job's Secret.
#pragma once

#include <vector>

#include "common/base/clock.h"
#include "kube/object.h"
#include "operator/records/connection.h"
#include "operator/records/record_keys.h"

namespace medley::ops {

// What the job may have, what a new job gets first: with the first key, and with a CA if `tls`. The others are of an
// earlier key, and of an operator with another setting. `now`: of a job without a time of creation. Never empty.
// Errors: Internal (OpenSSL). Thread-safe.
absl::StatusOr<std::vector<JobCredentials>> DeriveCredentials(const RecordKeys& keys, const kube::Object& job, bool tls,
                                                              base::WallTime now);

}  // namespace medley::ops
