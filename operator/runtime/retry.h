// Read, change, write, and again when somebody else wrote in between (client-go's RetryOnConflict).
#pragma once

#include <functional>

#include "common/base/clock.h"
#include "kube/client.h"

namespace medley::ops {

// Calls `attempt` up to 5 times, 10 ms (+-10 %) apart, while it returns a conflict; it must read anew each
// time. Returns its last status; Cancelled when stopped.
absl::Status RetryOnConflict(base::Clock& clock, uint64_t seed, std::stop_token stop,
                             const std::function<absl::Status()>& attempt);

// Gets `key`, lets `change` alter a copy, writes it with its resourceVersion as precondition
// (`subresource`: "" or "status"). No write when `change` changed nothing. Returns the object as stored.
absl::StatusOr<kube::Object> UpdateWithRetry(kube::Client& client, const kube::Resource& resource, const kube::Key& key,
                                             std::string_view subresource, base::Clock& clock, uint64_t seed,
                                             std::stop_token stop,
                                             const std::function<absl::Status(kube::Object&)>& change);

}  // namespace medley::ops
