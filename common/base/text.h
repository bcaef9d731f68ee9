// Small operations on text.
#pragma once

#include <string_view>

namespace medley::base {

inline constexpr std::string_view kBlanks = " \t\r\n";

// Returns `text` without the characters of `unwanted` at both ends.
inline std::string_view Trim(std::string_view text, std::string_view unwanted = kBlanks) {
  const size_t begin = text.find_first_not_of(unwanted);
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(unwanted) - begin + 1);
}

}  // namespace medley::base
