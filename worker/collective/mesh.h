// Connects every pair of a group's ranks: by TLS where GroupOptions::tls is given, else in plain text.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <stop_token>
#include <vector>

#include "worker/collective/group.h"
#include "worker/collective/peer_stream.h"

namespace medley::worker {

// By rank; null for the own one. Errors: DeadlineExceeded, Unavailable (naming the peer), Cancelled.
absl::StatusOr<std::vector<std::unique_ptr<PeerStream>>> ConnectMesh(const GroupOptions& options, KeyValueStore& store,
                                                                     const std::stop_token& stop);

}  // namespace medley::worker
