// The role that computes an exported model for another process.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>

#include "worker/model/make_block.h"

namespace medley::worker {

// Reads the export in `folder` and answers requests on the socket that is standard input until the other side ends.
// What is wrong with the export is its first answer. This process has been confined. Returns the exit code. Errors:
// those of the socket. `make_block`: computes models from PyTorch.
absl::StatusOr<int> RunPredictorRole(const std::filesystem::path& folder, const BlockMaker& make_block);

}  // namespace medley::worker
