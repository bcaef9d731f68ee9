// One line of a CSV or TSV file to its fields.
//
// Fields are trimmed of spaces and carriage returns (so ", " separates like ","); a field that
// begins with a quote ends at the next single quote ("" stands for one quote inside) and keeps its
// spaces. A record is one line: a quoted field cannot hold a line break. Pure functions.
#pragma once

#include <absl/status/status.h>

#include <string>
#include <string_view>
#include <vector>

namespace medley::worker {

// Reused from line to line; the views point into the line or into `unescaped`.
struct CsvFields {
  std::vector<std::string_view> values;
  std::vector<std::string> unescaped;
};

// Errors: InvalidArgument for an unterminated quote or text after a closing quote.
absl::Status SplitCsv(std::string_view line, char delimiter, CsvFields& fields);

std::string_view Trim(std::string_view text);

}  // namespace medley::worker
