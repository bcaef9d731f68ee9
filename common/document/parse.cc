#include "common/document/parse.h"

#include <nlohmann/json.hpp>

#include "common/base/status.h"
#include "common/document/place.h"

namespace medley::document {

std::string Place(std::string_view text, size_t bytes) {
  size_t line = 1, column = 1;
  for (size_t i = 0; i + 1 < bytes && i < text.size(); ++i) {
    column = text[i] == '\n' ? 1 : column + 1;
    line += text[i] == '\n' ? 1 : 0;
  }
  return fmt::format("line {}, column {}", line, column);
}

absl::Status CheckSize(std::string_view text, const Limits& limits) {
  if (text.size() > limits.bytes) {
    return base::InvalidArgument("the document has {} bytes, more than {}", text.size(), limits.bytes);
  }
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return base::InvalidArgument("the document is empty");
  }
  return absl::OkStatus();
}

absl::StatusOr<nlohmann::json> Parse(std::string_view text, const Limits& limits) {
  MEDLEY_RETURN_IF_ERROR(CheckSize(text, limits));
  const char first = text[text.find_first_not_of(" \t\r\n")];
  if (first == '{' || first == '[') return ParseJson(text, limits);
  return ParseYaml(text, limits);
}

}  // namespace medley::document
