// Splits the text of an expression into tokens. Pure.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>
#include <vector>

namespace medley::cel {

struct Token {
  enum class Kind { kEnd, kName, kInt, kUint, kDouble, kString, kBytes, kSymbol };
  Kind kind = Kind::kEnd;
  std::string text;     // of a string: its value
  size_t position = 0;  // in the expression, in bytes
};

// Errors: InvalidArgument, with the position.
absl::StatusOr<std::vector<Token>> Tokenize(std::string_view text);

}  // namespace medley::cel
