// Adds an example to the API server's errors about durations, quantities and amounts, which name only a pattern. Pure.
#pragma once

#include <absl/status/status.h>

#include <string>

namespace medley::cli {

// An example of what a pattern of the CRDs allows: "90s, 5m or 1h30m"; empty: the pattern is not known.
std::string ExampleOf(const std::string& pattern);

// "... should match '^([0-9]+...'" becomes "... should match '^([0-9]+...', as in 90s, 5m or 1h30m". Other errors stay
// as they are.
absl::Status WithExample(const absl::Status& error);

}  // namespace medley::cli
