// Connects every pair of a group's ranks by TLS.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <stop_token>
#include <vector>

#include "worker/collective/group.h"
#include "worker/collective/tls_stream.h"

namespace medley::worker {

// By rank; null for the own one. Errors: DeadlineExceeded, Unavailable (naming the peer), Cancelled.
absl::StatusOr<std::vector<std::unique_ptr<TlsStream>>> ConnectMesh(const GroupOptions& options, KeyValueStore& store,
                                                                    const std::stop_token& stop);

}  // namespace medley::worker
