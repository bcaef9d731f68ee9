// What the workers of a local cluster compute on.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>

#include "common/base/clock.h"

namespace medley::cli {

// Asks `program` (medley-worker) whether it was built for GPUs; its answer is written to a file in `folder`. Errors:
// those of starting it, DeadlineExceeded, and Unavailable with what it said instead.
absl::StatusOr<bool> WorkerUsesGpus(base::Clock& clock, const std::filesystem::path& program,
                                    const std::filesystem::path& folder);

}  // namespace medley::cli
