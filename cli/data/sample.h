// The first rows of a table in a text file, which is enough to guess what its columns hold. Not thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/model/data_format.h"

namespace medley::cli {

struct SampleLimits {
  size_t bytes = size_t{4} << 20;  // of text, after decompression
  size_t rows = 20000;
};

using Row = std::vector<std::string>;

struct Sample {
  std::string path;
  char delimiter = ',';
  const model::DataFormat* format = nullptr;  // of a file of columns; null: of text with this delimiter
  std::vector<Row> rows;                      // each with `columns` fields; the first may be a header
  size_t columns = 0;                         // fields of most rows
  int64_t bad_rows = 0;                       // records that cannot be split into that many fields; not among `rows`
  std::string first_bad;                      // "data.csv:17: expected 5 columns, found 3"
  Row first_row;                              // as many fields as it has; empty when it cannot be split
  int64_t not_utf8_line = 0;                  // the first line that is not text in UTF-8; 0: none
  bool whole = true;                          // false: the file has more rows
  int64_t estimated_rows = 0;                 // of the whole file, the header counted too
};

// Reads the beginning of a file, or of the first of the files that match a pattern. Errors: NotFound, PermissionDenied,
// DataLoss (damaged gzip); InvalidArgument for a file that is empty, is no
// text in UTF-8, or whose lines have no common form.
absl::StatusOr<Sample> ReadSample(const std::string& path, const SampleLimits& limits = {});

// The same of a text, which is the beginning of a file of `file_bytes` bytes. Pure.
// `format`: of a file of columns, whose text has commas and a header.
absl::StatusOr<Sample> ParseSample(const std::string& path, std::string_view text, int64_t file_bytes,
                                   const SampleLimits& limits = {}, const model::DataFormat* format = nullptr);

// The format in manifests. Null when Medley does not read the table.
const model::DataFormat* FormatOf(const Sample& sample);

}  // namespace medley::cli
