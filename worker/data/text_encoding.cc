#include "worker/data/text_encoding.h"

#include <algorithm>
#include <utility>

#include "common/base/utf8.h"

namespace medley::worker {
namespace {

constexpr unsigned kReplacement = 0xfffd;

// Text of ASCII in UTF-16 has a zero in every second byte.
bool HasZerosAt(std::string_view text, size_t first) {
  size_t zeros = 0, other = 0;
  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    zeros += text[i + first] == '\0' ? 1 : 0;
    other += text[i + 1 - first] == '\0' ? 1 : 0;
  }
  return other == 0 && zeros > text.size() / 2 * 9 / 10;
}

}  // namespace

std::string KindOfBinary(std::string_view beginning) {
  constexpr std::pair<std::string_view, const char*> kKinds[] = {
      {"PAR1", "a Parquet file"},
      {"PK\x03\x04", "a ZIP archive or a spreadsheet"},
      {"\xd0\xcf\x11\xe0", "a spreadsheet or another document of Microsoft Office"},
      {"BZh", "compressed with bzip2"},
      {"\xfd"
       "7zXZ",
       "compressed with xz"},
      {"\x28\xb5\x2f\xfd", "compressed with zstd"},
      {"SQLite format 3", "an SQLite database"},
      {"\x89HDF", "an HDF5 file"},
      {"ARROW1", "an Arrow file"},
      {"\x93NUMPY", "a NumPy array"},
  };
  constexpr std::string_view kUtf32[] = {{"\xff\xfe\0\0", 4}, {"\0\0\xfe\xff", 4}};
  if (beginning.starts_with(kUtf32[0]) || beginning.starts_with(kUtf32[1])) return "text in UTF-32";
  if (beginning.starts_with("\xff\xfe") || beginning.starts_with("\xfe\xff")) return "";  // UTF-16, which is read
  const std::string_view begins = beginning.substr(0, 512);
  // A table may begin with these letters, but it has no control characters.
  const bool control = std::ranges::any_of(begins, [](char c) { return static_cast<unsigned char>(c) < 9; });
  for (const auto& [magic, kind] : kKinds) {
    if (begins.starts_with(magic) && control) return kind;
  }
  if (begins.size() >= 4 && (HasZerosAt(begins, 0) || HasZerosAt(begins, 1))) {
    return "text in UTF-16 without a byte order mark";
  }
  return "";
}

size_t FindInvalidUtf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    const size_t length = byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
    if (length > 1 && !base::IsUtf8(text.substr(at, length))) {
      return at + length > text.size() && byte >= 0xc2 ? std::string_view::npos : at;
    }
    at += length;
  }
  return std::string_view::npos;
}

TextDecoder::TextDecoder(std::string_view beginning) {
  if (beginning.starts_with("\xff\xfe")) {
    encoding_ = Encoding::kUtf16Le;
    mark_ = 2;
  } else if (beginning.starts_with("\xfe\xff")) {
    encoding_ = Encoding::kUtf16Be;
    mark_ = 2;
  } else if (beginning.starts_with("\xef\xbb\xbf")) {
    mark_ = 3;
  }
  // One at the end of `beginning` may belong to a line feed that follows.
  carriage_returns_ = beginning.find('\n') == std::string_view::npos &&
                      beginning.substr(0, beginning.size() - std::min<size_t>(1, beginning.size())).find('\r') !=
                          std::string_view::npos;
}

void TextDecoder::AppendCharacter(unsigned code, std::string& text) const {
  const auto byte = [&](unsigned value) { text += static_cast<char>(static_cast<unsigned char>(value)); };
  if (code < 0x80) {
    byte(code == '\r' && carriage_returns_ ? '\n' : code);
  } else if (code < 0x800) {
    byte(0xc0 | code >> 6);
    byte(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    byte(0xe0 | code >> 12);
    byte(0x80 | (code >> 6 & 0x3f));
    byte(0x80 | (code & 0x3f));
  } else {
    byte(0xf0 | code >> 18);
    byte(0x80 | (code >> 12 & 0x3f));
    byte(0x80 | (code >> 6 & 0x3f));
    byte(0x80 | (code & 0x3f));
  }
}

void TextDecoder::AppendUnit(unsigned unit, std::string& text) {
  const unsigned high = std::exchange(high_, 0);
  if (unit >= 0xdc00 && unit < 0xe000) {
    AppendCharacter(high == 0 ? kReplacement : 0x10000 + ((high - 0xd800) << 10) + (unit - 0xdc00), text);
    return;
  }
  if (high != 0) AppendCharacter(kReplacement, text);
  if (unit >= 0xd800 && unit < 0xdc00) {
    high_ = unit;
  } else {
    AppendCharacter(unit, text);
  }
}

void TextDecoder::Append(std::string_view bytes, bool last, std::string& text) {
  const size_t mark = std::min(mark_, bytes.size());
  bytes.remove_prefix(mark);
  mark_ -= mark;
  if (encoding_ == Encoding::kBytes) {
    const size_t begin = text.size();
    text += bytes;
    if (carriage_returns_) std::replace(text.begin() + static_cast<int64_t>(begin), text.end(), '\r', '\n');
    return;
  }
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (!half_) {
      first_ = byte;
    } else {
      AppendUnit(encoding_ == Encoding::kUtf16Le ? static_cast<unsigned>(byte) << 8 | first_
                                                 : static_cast<unsigned>(first_) << 8 | byte,
                 text);
    }
    half_ = !half_;
  }
  if (last && (half_ || high_ != 0)) AppendCharacter(kReplacement, text);
}

}  // namespace medley::worker
