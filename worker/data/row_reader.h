// The rows of a piece of text, divided into fields, of any format of text. Not thread-safe.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <string_view>

#include "worker/data/csv.h"
#include "worker/data/record.h"
#include "worker/data/row_scanner.h"

namespace medley::worker {

struct TextRow {
  int64_t lines = 1;    // that it takes up
  bool blank = false;   // a line without a row
  absl::Status status;  // InvalidArgument when the row cannot be divided
};

class RowReader {
 public:
  // `text` has whole rows. `columns`: of a row of libsvm.
  RowReader(std::string_view text, char delimiter, size_t columns)
      : delimiter_(delimiter), columns_(columns), rest_(text), scanner_(text, delimiter) {}

  // Reads the next row; false at the end of the text. The fields point into the text.
  bool Next(CsvFields& fields, TextRow& row);
  // How many bytes of the text have not been read.
  size_t rest_bytes() const { return delimiter_ == kLibsvmDelimiter ? rest_.size() : scanner_.rest().size(); }

 private:
  bool NextLibsvm(CsvFields& fields, TextRow& row);

  const char delimiter_;
  const size_t columns_;
  std::string_view rest_;  // libsvm: what has not been read
  RowScanner scanner_;
};

}  // namespace medley::worker
