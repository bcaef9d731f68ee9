// Guesses what a column holds from the kinds of most of its values. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cli/data/sample.h"

namespace medley::cli {

enum class ColumnType {
  kNumeric,      // numbers; a few other texts are taken as missing
  kCategorical,  // text, and whole numbers that are names
  kDate,         // dates or times
  kIdentifier,   // another value in every row, of which a model learns nothing
  kConstant,     // one value in all rows
};
const char* TypeName(ColumnType type);

struct TypeGuess {
  ColumnType type = ColumnType::kCategorical;
  int64_t missing = 0;               // rows without a value
  std::vector<std::string> texts;    // that mean a missing value in this column beside worker::IsMissingText
  int64_t unreadable = 0;            // rows whose value is of another type, and is not among `texts`
  bool day_first = false;            // kDate: 31/1/2024
  std::vector<std::string> because;  // sentences for users about what was decided against some values
};

// `name`: for the sentences, 'age' or 3, and `plain_name`, by which identifiers are known. `rows` are not empty.
TypeGuess GuessType(const std::vector<Row>& rows, size_t column, const std::string& name,
                    const std::string& plain_name);

// The same when the user says what it is: kNumeric or kCategorical.
TypeGuess TypeAs(ColumnType wanted, const std::vector<Row>& rows, size_t column, const std::string& name);

}  // namespace medley::cli
