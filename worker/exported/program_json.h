// The graph of an exported program from its JSON. Pure.
#pragma once

#include <absl/status/statusor.h>

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "worker/exported/archive.h"
#include "worker/exported/program.h"

namespace medley::worker::exported {

// All of a Program but its stored tensors. Errors: those of ReadArchive.
absl::StatusOr<Program> ParseProgram(std::string_view json, const ReadOptions& options);

// JSON that is nested at most 64 deep. `what` names the text in errors.
absl::StatusOr<nlohmann::json> ParseStrict(std::string_view text, std::string_view what);

// Sizes, strides and type of a tensor that is fixed. Errors: InvalidArgument that names `name`.
absl::StatusOr<StoredTensor> ParseStored(const nlohmann::json& meta, const std::string& name);

// A tensor's elements lie within its storage. Errors: InvalidArgument that names `name`.
absl::Status CheckStored(const StoredTensor& tensor, const std::string& name);

}  // namespace medley::worker::exported
