// Reads, changes and writes an object; retries when another client wrote it meanwhile (client-go's RetryOnConflict).
#pragma once

#include <functional>

#include "common/base/clock.h"
#include "kube/client.h"

namespace medley::ops {

// Calls `attempt` up to 5 times, 10 ms (+-10 %) apart, while it returns a conflict. `attempt` must read the object each
// time. Returns the last status; Cancelled when stopped.
absl::Status RetryOnConflict(base::Clock& clock, uint64_t seed, std::stop_token stop,
                             const std::function<absl::Status()>& attempt);

// Gets the object `key`, calls `change` with a copy, and updates the object with its resourceVersion as precondition
// (`subresource`: "" or "status"). Does not write when `change` changed nothing. Returns the stored object.
absl::StatusOr<kube::Object> UpdateWithRetry(kube::Client& client, const kube::Resource& resource, const kube::Key& key,
                                             std::string_view subresource, base::Clock& clock, uint64_t seed,
                                             std::stop_token stop,
                                             const std::function<absl::Status(kube::Object&)>& change);

}  // namespace medley::ops
