// Guesses the header and the types of the columns of a table from its first rows. Pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cli/data/sample.h"

namespace medley::cli {

enum class ColumnType {
  kNumeric,      // every value is a number or missing
  kCategorical,  // text
  kIdentifier,   // another value in every row, of which a model learns nothing
  kConstant,     // one value in all rows
};
const char* TypeName(ColumnType type);

struct ColumnGuess {
  int number = 0;      // from 0
  std::string name;    // of the header; empty without one
  bool named = false;  // a manifest can name the column: the name is not empty, unique and text in UTF-8
  ColumnType type = ColumnType::kCategorical;
  int64_t missing = 0;                                 // rows without a value
  std::map<std::string, int64_t, std::less<>> values;  // rows by value, without the missing; not all if there are many
  bool many_values = false;
};

struct TableGuess {
  bool header = false;
  std::vector<ColumnGuess> columns;
  std::vector<Row> rows;  // of the sample, without the header
};

// The first row is a header when its fields are all filled and no numbers, and when a column is numeric below it or no
// field of it occurs again in its column.
TableGuess GuessTable(const Sample& sample);

// The column for messages and comments: 'age', or 3.
std::string ColumnText(const ColumnGuess& column);

}  // namespace medley::cli
