#include "common/base/utf8.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace medley::base {
namespace {

// The bytes of the character at the beginning of `bytes`, which is not empty; 0: they are no character. The table of
// well-formed byte sequences in the Unicode standard, section 3.9.
size_t CharacterBytes(std::string_view bytes) {
  const auto at = [&](size_t i) { return i < bytes.size() ? static_cast<uint8_t>(bytes[i]) : uint8_t{0}; };
  const auto follows = [&](size_t i, uint8_t least = 0x80, uint8_t most = 0xBF) {
    return at(i) >= least && at(i) <= most;
  };
  const uint8_t first = at(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const uint8_t least = first == 0xE0 ? 0xA0 : 0x80;
    const uint8_t most = first == 0xED ? 0x9F : 0xBF;
    return follows(1, least, most) && follows(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const uint8_t least = first == 0xF0 ? 0x90 : 0x80;
    const uint8_t most = first == 0xF4 ? 0x8F : 0xBF;
    return follows(1, least, most) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

bool IsUtf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t length = CharacterBytes(bytes);
    if (length == 0) return false;
    bytes.remove_prefix(length);
  }
  return true;
}

namespace {

std::string Escape(std::string_view bytes, bool control) {
  std::string text;
  while (!bytes.empty()) {
    const auto first = static_cast<uint8_t>(bytes.front());
    size_t length = CharacterBytes(bytes);
    if (control && (first < 0x20 || first == 0x7F)) length = 0;
    if (length > 0) text += bytes.substr(0, length);
    if (length == 0) fmt::format_to(std::back_inserter(text), "\\x{:02x}", first);
    bytes.remove_prefix(length == 0 ? 1 : length);
  }
  return text;
}

}  // namespace

std::string EscapeInvalidUtf8(std::string_view bytes) {
  return IsUtf8(bytes) ? std::string(bytes) : Escape(bytes, false);
}

std::string Printable(std::string_view bytes, size_t most) {
  if (bytes.size() <= most) return Escape(bytes, true);
  size_t end = most;
  while (end > 0 && (static_cast<uint8_t>(bytes[end]) & 0xC0) == 0x80) --end;  // no part of a character
  return fmt::format("{}... ({} bytes)", Escape(bytes.substr(0, end == 0 ? most : end), true), bytes.size());
}

}  // namespace medley::base
