// Divides the lines of a text into fields, 64 bytes at a time: the fast way of TakeLine and SplitCsv (record.h, csv.h)
// for lines without quotes, with the same result. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace medley::worker {

class RowScanner {
 public:
  enum class Line {
    kFields,  // the line was divided
    kQuotes,  // it has a quote, and was not taken: the record may be longer than the line
    kEnd      // no text is left
  };

  RowScanner(std::string_view text, char delimiter) : text_(text), delimiter_(delimiter) {}

  // Takes the next line and replaces `values` by its fields, without the blanks around them; they point into the text.
  Line Next(std::vector<std::string_view>& values);
  // The bytes of the last line that was taken, without its end.
  size_t line_bytes() const { return line_bytes_; }
  // What follows the last line that was taken.
  std::string_view rest() const { return text_.substr(line_); }
  // Continues where `rest` begins, which is an end of the text.
  void Continue(std::string_view rest);

 private:
  void Load(size_t block);

  static constexpr size_t kBlock = 64;
  static constexpr size_t kNoBlock = static_cast<size_t>(-1);

  const std::string_view text_;
  const char delimiter_;
  size_t line_ = 0;  // where the next line begins
  size_t line_bytes_ = 0;
  size_t block_ = kNoBlock;  // where the block begins that the marks are of
  uint64_t marks_ = 0;  // of the characters of the block: delimiters, ends of lines and quotes, from the lowest bit
};

}  // namespace medley::worker
