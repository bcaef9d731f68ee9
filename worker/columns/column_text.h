// A file of columns as the text of a table: a header, then a row for each. Who reads such a file in small parts, or as
// text, reads this. Pure but for the file. Not thread-safe.
//
// Texts that have the delimiter, a quote, a line break or blanks at an end are in quotes. Numbers are written so that
// reading them gives the same double.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "worker/columns/column_file.h"

namespace medley::worker {

// Appends a field, in quotes where it needs them.
void AppendField(std::string_view value, char delimiter, std::string& text);

// Errors: InvalidArgument for a column that cannot be read, naming it and its type, and for two of one name or none.
absl::Status CheckColumns(const ColumnFile& file, const std::string& name);

class ColumnText {
 public:
  // `file` has been checked.
  ColumnText(std::unique_ptr<ColumnFile> file, std::string name, char delimiter, bool header);

  // Appends the header, or the next rows, to `text`; nothing at the end of the file. Errors: InvalidArgument.
  absl::Status Append(std::string& text);
  int64_t bytes_read() const { return file_->bytes_read(); }

 private:
  std::unique_ptr<ColumnFile> file_;
  const std::string name_;
  const char delimiter_;
  bool header_;  // is still to be written
  bool began_ = false;
  ColumnBatch batch_;
};

}  // namespace medley::worker
