// The tables of `medley data head`. Pure.
#pragma once

#include <string>

#include "cli/data/guess.h"

namespace medley::cli {

// A table of the columns (number, name, type, values) and the first `rows` rows.
std::string HeadText(const Sample& sample, const TableGuess& table, size_t rows);

// The same as JSON, an object: path, rows (that were read), whole, estimatedRows, delimiter, header, badRows,
// firstBad, columns ({number, name, type, values, moreValues, missing}) and head, the first `rows` rows as texts.
std::string HeadJson(const Sample& sample, const TableGuess& table, size_t rows);

}  // namespace medley::cli
