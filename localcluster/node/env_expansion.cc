#include "localcluster/node/env_expansion.h"

namespace medley::localcluster {

std::string ExpandVariables(std::string_view text, const VariableLookup& lookup) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    if (text[i + 1] == '$') {
      out += '$';
      ++i;
      continue;
    }
    const size_t close = text[i + 1] == '(' ? text.find(')', i + 2) : std::string_view::npos;
    if (close == std::string_view::npos) {
      out += '$';
      continue;
    }
    const std::optional<std::string> value = lookup(text.substr(i + 2, close - i - 2));
    out += value ? *value : std::string(text.substr(i, close - i + 1));
    i = close;
  }
  return out;
}

}  // namespace medley::localcluster
