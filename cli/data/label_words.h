// What words and names mean to `medley init`, and columns by their names. Pure functions.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <string>

#include "cli/data/guess.h"
#include "worker/data/number.h"

namespace medley::cli {

// Lower-case letters instead of A to Z.
std::string Lower(std::string text);
// Whether a column has a name that labels have, or weights of rows.
bool IsLabelName(const std::string& name);
bool IsWeightName(const std::string& name);
// 1: the text means yes, -1: no, 0: neither.
int MeaningOf(const std::string& text);
worker::Value NumberOf(const std::string& text);

// The position of the column with the name, or the number, `wanted`. Errors: NotFound, with "did you mean".
absl::StatusOr<size_t> FindColumn(const std::string& path, const TableGuess& table, const std::string& wanted);

}  // namespace medley::cli
