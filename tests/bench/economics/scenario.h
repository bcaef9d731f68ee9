// Scenario files: which recorded series is the price of which resource type (tests/bench/economics/*.yaml).
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>

#include "tests/bench/economics/replay.h"

namespace medley::bench {

// `root`: the repository, which paths in the file are relative to. Errors: what could not be read, with file and field.
absl::StatusOr<Scenario> ReadScenario(const std::filesystem::path& root, const std::filesystem::path& file);

}  // namespace medley::bench
