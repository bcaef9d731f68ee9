// Where the rows of a CSV or TSV file end. Every reader of tables divides text with these functions. Pure.
//
// A row is a record of RFC 4180: it ends at a line break that is not inside a quoted field. A field is quoted when its
// first character, after blanks, is a double quote. Text that is no such record is one line: a quote that is never
// closed, or whose closing quote is followed by more text in a later line, spoils its own line only and not those
// below. In libsvm files each line is a row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace medley::worker {

// The delimiter of libsvm files (common/model/data_format.h): it stands for their whole form (worker/data/libsvm.h).
inline constexpr char kLibsvmDelimiter = ' ';

// A record that reaches further than this beyond its first line is taken for a quote that is never closed.
inline constexpr size_t kLongestQuote = size_t{1} << 20;

struct Record {
  std::string_view text;  // without the line break at its end
  int64_t lines = 1;      // that it takes up
};

// Removes the first record from `text`. `whole`: no more text follows. Returns nothing at the end of the text, and when
// the end of the record is in text that follows.
std::optional<Record> TakeRecord(std::string_view& text, char delimiter, bool whole);

// Whether the text of a record holds no row: blanks, and in libsvm also a comment.
bool IsBlankRow(std::string_view text, char delimiter);

// Removes from `text` the records that begin in its first `bytes` bytes, and returns their text. All of the text when
// it is shorter.
std::string_view TakePiece(std::string_view& text, char delimiter, size_t bytes);

// The number of fields of most rows among the first kRowsLookedAt of a table without a header that have `least` fields
// or more; of two numbers that are equally frequent that of the earlier row. `least` when no row has so many. `text` is
// the beginning of the table.
inline constexpr int kRowsLookedAt = 100;
size_t FieldsOfMost(std::string_view text, char delimiter, size_t least);

// Whether `text` has as many rows as FieldsOfMost looks at.
bool HasEnoughRows(std::string_view text, char delimiter);

}  // namespace medley::worker
