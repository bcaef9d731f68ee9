// Checks, and parts of error messages, that the JSON and the YAML parser share. Internal to common/document.
#pragma once

#include <absl/status/status.h>

#include <string>
#include <string_view>

#include "common/document/parse.h"

namespace medley::document {

// "line 3, column 7" of the `bytes`-th byte; both count from 1.
std::string Place(std::string_view text, size_t bytes);

// InvalidArgument for text that exceeds the limit or has only white space.
absl::Status CheckSize(std::string_view text, const Limits& limits);

}  // namespace medley::document
