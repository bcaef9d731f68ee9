// Opens files of columns by the library libmedley-columns.so, which is loaded at the first one and lies beside the
// program, or in ../lib. Thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>
#include <string_view>

#include "worker/columns/column_file.h"

namespace medley::worker {

enum class ColumnFormat { kNone, kParquet, kArrow };

// What a file is by its first bytes, of which at least 512 are given where it has so many. A table of text may begin
// with the same letters, but it has no control characters.
ColumnFormat ColumnFormatOf(std::string_view beginning);

// `name` is for errors. Errors: Unimplemented, when the library is not installed, with what to do; InvalidArgument for
// a file that is damaged or has no column that can be read.
absl::StatusOr<std::unique_ptr<ColumnFile>> OpenColumns(int file, const std::string& name, ColumnFormat format,
                                                        int threads = 1);

}  // namespace medley::worker
