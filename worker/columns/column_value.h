// A value of a column as text. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "worker/columns/column_file.h"

namespace medley::worker {

// Appends the value of a row of the batch: a number with as few digits as tell the same double, or the text itself.
// Nothing when it is missing.
void AppendValue(const ColumnValues& values, int64_t row, std::string& text);

}  // namespace medley::worker
