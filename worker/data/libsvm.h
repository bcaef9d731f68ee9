// The lines of libsvm files: `LABEL INDEX:VALUE INDEX:VALUE ... # COMMENT`. Pure.
//
// As a table, column 0 is the label and column i the feature with index i, which counts from 1. Features that a line
// does not name are 0. `qid:NUMBER` after the label, as in SVMrank, is left out.
#pragma once

#include <absl/status/status.h>

#include <cstddef>
#include <string_view>

#include "worker/data/csv.h"

namespace medley::worker {

// The largest index that a line may have.
inline constexpr size_t kMostLibsvmIndex = 100'000'000;

// Replaces fields.values by the first `columns` columns of a line, at least one; features with larger indices are only
// checked. With `columns` 0: as many as the line has. Errors: InvalidArgument ("'x:1' is not INDEX:VALUE ..."), also
// for an index 0 and for one that the line has twice.
absl::Status SplitLibsvm(std::string_view line, size_t columns, CsvFields& fields);

// Whether the text, which is the beginning of a file, has the form of libsvm: each of its first lines has, and one of
// them has a feature. `whole`: the text is all of the file.
bool LooksLikeLibsvm(std::string_view text, bool whole);

// SplitLibsvm for the delimiter of libsvm, else SplitCsv.
absl::Status SplitRow(std::string_view line, char delimiter, size_t columns, CsvFields& fields);

}  // namespace medley::worker
