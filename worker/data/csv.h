// Splits one record of a CSV or TSV file (worker/data/record.h) into its fields.
//
// Spaces and carriage returns around fields are dropped, so ", " separates like ",". A field that begins with a double
// quote ends at the next one ("" stands for one quote inside) and keeps its spaces and line breaks. Pure functions.
#pragma once

#include <absl/status/status.h>

#include <string>
#include <string_view>
#include <vector>

namespace medley::worker {

// The fields of one record. Reused for the next one; `values` point into the record or into `unescaped`.
struct CsvFields {
  std::vector<std::string_view> values;
  std::vector<std::string> unescaped;
};

// Errors: InvalidArgument for an unterminated quote or text after a closing quote.
absl::Status SplitCsv(std::string_view line, char delimiter, CsvFields& fields);

// Without the blanks at both ends. Inline, because it is called for each field.
inline std::string_view Trim(std::string_view text) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\r'; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

// The text of a file without the byte order mark of UTF-8, which may begin it.
std::string_view WithoutMark(std::string_view text);

}  // namespace medley::worker
