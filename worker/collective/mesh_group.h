// A group over a mesh of streams (mesh.h), encrypted and authenticated or in plain text.
//
// Each pair of ranks has one connection; the rank that is larger connects. A reading thread for each peer puts messages
// where a receiver waits for them, or keeps them until one does. Send writes a small message itself, as far as the
// connection takes it at once; a sending thread for each peer sends what Send has queued. Collectives write in the
// caller's thread.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <stop_token>

#include "worker/collective/group.h"

namespace medley::worker {

absl::StatusOr<std::unique_ptr<Group>> ConnectMeshGroup(const GroupOptions& options, KeyValueStore& store,
                                                        std::stop_token stop);

}  // namespace medley::worker
