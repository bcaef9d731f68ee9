// Text as XML, and so SVG, holds it. Pure.
#pragma once

#include <string>

namespace medley::base {

// With the characters escaped that XML gives a meaning; control characters, which it forbids, become spaces.
inline std::string XmlText(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
  }
  return out;
}

}  // namespace medley::base
