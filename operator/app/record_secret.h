// The Secret with the key that signs records (operator/records/record_keys.h). It is in the operator's own namespace,
// where users have no rights. All replicas and all later processes use the same; the first creates it. It is not in the
// chart, because tools that render charts without a cluster would make another key each time.
#pragma once

#include <absl/status/statusor.h>

#include <stop_token>

#include "common/base/clock.h"
#include "kube/client.h"
#include "operator/records/record_keys.h"

namespace medley::ops {

// Entries of the Secret: "key" signs; what "previous" has signed is believed as well, for the time of a rotation. Both
// are text of at least 32 bytes. Waits up to 2 minutes for an API server that does not answer. Errors:
// FailedPrecondition: the Secret has no such key; those of the API server, saying which rights are needed.
absl::StatusOr<RecordKeys> EnsureRecordKeys(kube::Client& client, const kube::Key& secret, base::Clock& clock,
                                            std::stop_token stop);

}  // namespace medley::ops
