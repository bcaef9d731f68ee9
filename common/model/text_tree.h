// Text as a tree of values, and back.
#pragma once

#include <absl/status/statusor.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace medley::model {

// JSON (text that begins with { or [) or YAML as a tree whose strings are valid UTF-8. Errors: InvalidArgument, see
// ParseText.
absl::StatusOr<nlohmann::json> ReadTree(std::string_view text);

std::string TreeToYaml(const nlohmann::json& tree);

}  // namespace medley::model
