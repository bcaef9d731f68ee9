// A group whose sums over all ranks pass through memory that the ranks share, where they are processes of one machine.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <memory>
#include <stop_token>

#include "worker/collective/group.h"

namespace medley::worker {

// Returns a group that adds in shared memory and does everything else over `base`, if every rank can share; else
// `base`. All ranks must call it. The ranks agree over the connections of `base`, so with TLS only a process of the job
// learns where the memory is. Errors: those of `base`, Cancelled.
absl::StatusOr<std::unique_ptr<Group>> ShareMemory(std::unique_ptr<Group> base, const GroupOptions& options,
                                                   std::stop_token stop);

// The size of a slot of SharedMemory in such a group.
size_t SharedSlotBytes(int ranks);

}  // namespace medley::worker
