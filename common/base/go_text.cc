#include "common/base/go_text.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>

namespace medley::base {
namespace {

// The character that begins at `at` and its length in bytes; a length of 0: the bytes are not UTF-8.
uint32_t RuneAt(std::string_view text, size_t at, size_t& length) {
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(text[i])); };
  const uint32_t first = byte(at);
  const size_t want = first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
  length = 0;
  if (want == 0 || at + want > text.size()) return first;
  uint32_t rune = want == 1 ? first : first & (0x7FU >> want);
  for (size_t i = 1; i < want; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return first;
    rune = rune << 6 | (byte(at + i) & 0x3F);
  }
  const bool shortest = want < 3 || (want == 3 ? rune >= 0x800 : rune >= 0x10000);
  if (shortest && rune <= 0x10FFFF && (rune < 0xD800 || rune > 0xDFFF)) length = want;
  return rune;
}

bool IsPrinted(uint32_t rune) {
  const bool control = rune < 0x20 || (rune >= 0x7F && rune < 0xA1) || rune == 0xAD;
  const bool format = (rune >= 0x2000 && rune <= 0x200F) || (rune >= 0x2028 && rune <= 0x202F) ||
                      (rune >= 0x205F && rune <= 0x206F) || rune == 0x3000 || rune == 0xFEFF;
  return !control && !format && rune != 0xFFFE && rune != 0xFFFF && !(rune >= 0xE000 && rune <= 0xF8FF);
}

}  // namespace

std::string GoQuote(std::string_view text) {
  static constexpr std::string_view kNamed = "\a\b\f\n\r\t\v\\\"";
  static constexpr std::string_view kLetters = "abfnrtv\\\"";
  std::string quoted = "\"";
  for (size_t at = 0; at < text.size();) {
    size_t length = 0;
    const uint32_t rune = RuneAt(text, at, length);
    if (length == 0) {
      quoted += fmt::format("\\x{:02x}", rune);
    } else if (const size_t named = kNamed.find(text[at]); named != std::string_view::npos) {
      quoted += '\\';
      quoted += kLetters[named];
    } else if (rune == ' ' || IsPrinted(rune)) {
      quoted += text.substr(at, length);
    } else if (rune < 0x80) {
      quoted += fmt::format("\\x{:02x}", rune);
    } else {
      quoted += rune < 0x10000 ? fmt::format("\\u{:04x}", rune) : fmt::format("\\U{:08x}", rune);
    }
    at += length == 0 ? 1 : length;
  }
  return quoted + "\"";
}

std::string GoNumber(double value, int exponent_from) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  std::array<char, 64> buffer{};
  const auto scientific =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::scientific);
  std::string text(buffer.data(), scientific.ptr);
  const int exponent = std::atoi(text.c_str() + text.find('e') + 1);
  const int least = exponent_from == 21 ? -6 : -4;  // encoding/json and fmt differ
  if (exponent < least || exponent >= exponent_from) {
    // JSON writes 1e-7, fmt 1e-07.
    const size_t sign = text.find('e') + 1;
    if (exponent_from == 21 && text[sign] == '-' && text[sign + 1] == '0') text.erase(sign + 1, 1);
    return text;
  }
  const auto fixed = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed);
  return {buffer.data(), fixed.ptr};
}

}  // namespace medley::base
