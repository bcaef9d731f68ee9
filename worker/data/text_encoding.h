// The encoding of a file of text, by how it begins, and its conversion to UTF-8 with line feeds. Text that is not UTF-8
// and has no byte order mark, such as Latin-1, is kept as its bytes.
//
// Not thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace medley::worker {

// What a file is that users take for a CSV file ("a Parquet file"), by its first bytes; empty when it may be text.
std::string KindOfBinary(std::string_view beginning);

// The position of the first byte that is not UTF-8, also not the beginning of a character that the end of `text` cuts;
// npos when there is none.
size_t FindInvalidUtf8(std::string_view text);

class TextDecoder {
 public:
  // `beginning`: at least the first kilobytes of the file, or all of it.
  explicit TextDecoder(std::string_view beginning);
  // Whether Append changes nothing but the byte order mark.
  bool plain() const { return encoding_ == Encoding::kBytes && !carriage_returns_; }

  // Appends the next bytes of the file to `text`. `last`: no more bytes follow; half a character becomes U+FFFD.
  void Append(std::string_view bytes, bool last, std::string& text);

 private:
  enum class Encoding { kBytes, kUtf16Le, kUtf16Be };

  void AppendUnit(unsigned unit, std::string& text);
  void AppendCharacter(unsigned code, std::string& text) const;

  Encoding encoding_ = Encoding::kBytes;
  bool carriage_returns_ = false;  // lines end in them, as on old Macs
  size_t mark_ = 0;                // bytes of the byte order mark that have not been left out yet
  bool half_ = false;              // of a unit of UTF-16
  unsigned char first_ = 0;
  unsigned high_ = 0;  // the first half of a pair of units; 0: none
};

}  // namespace medley::worker
