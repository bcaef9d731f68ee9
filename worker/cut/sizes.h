// Sizes that depend on the batch. Pure.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>

#include "worker/exported/program.h"

namespace medley::worker::cut {

// A number for so many samples; `symbol`: of the batch. Errors: InvalidArgument for other symbols, and what overflows.
absl::StatusOr<int64_t> Evaluate(const exported::SymInt& size, const std::string& symbol, int64_t samples);
// For a tensor. Errors: also InvalidArgument for negative sizes.
absl::StatusOr<int64_t> Elements(const exported::TensorMeta& meta, const std::string& symbol, int64_t samples);

}  // namespace medley::worker::cut
