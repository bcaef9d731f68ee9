// Guesses the header and the types of the columns of a table from its first rows. Pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cli/data/column_type.h"
#include "cli/data/sample.h"

namespace medley::cli {

struct ColumnGuess {
  int number = 0;      // from 0
  std::string name;    // of the header; empty without one
  bool named = false;  // a manifest can name the column: the name is not empty, unique and text in UTF-8
  ColumnType type = ColumnType::kCategorical;
  int64_t missing = 0;                                 // rows without a value
  int64_t unreadable = 0;                              // rows that a job cannot read
  bool day_first = false;                              // kDate
  std::vector<std::string> missing_texts;              // TypeGuess::texts
  std::vector<std::string> because;                    // sentences for users
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
// `wanted`: the types that the user gives to columns, by their numbers.
TableGuess GuessTable(const Sample& sample, const std::map<size_t, ColumnType>& wanted = {});

// The column for messages and comments: 'age', or 3.
std::string ColumnText(const ColumnGuess& column);

}  // namespace medley::cli
