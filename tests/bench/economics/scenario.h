// Reads scenario files (tests/bench/economics/*.yaml), which assign recorded series to resource types.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>

#include "tests/bench/economics/replay.h"

namespace medley::bench {

// Paths in the file are relative to `root`, the repository. Errors name the file and the field.
absl::StatusOr<Scenario> ReadScenario(const std::filesystem::path& root, const std::filesystem::path& file);

}  // namespace medley::bench
