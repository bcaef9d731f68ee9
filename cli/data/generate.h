// Rows like those of the Criteo data set of advertisements: a label (clicked or not), 13 counts of which some are
// missing, and 26 categories with its numbers of different values, of which few occur often. The label depends on them.
//
// Equal seeds give equal bytes on every machine: only additions, multiplications, divisions and comparisons of doubles
// are used, which IEEE 754 rounds in one way. Not thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/rng.h"

namespace medley::cli {

class CriteoRows {
 public:
  // `delimiter`: one of common/model/data_format.h; that of libsvm means its form, in which a category is the number of
  // its value.
  CriteoRows(uint64_t seed, char delimiter) : rng_(seed), delimiter_(delimiter) {}

  // Appends the names of the columns: label, i1 to i13, c1 to c26. Nothing for libsvm.
  void AppendHeader(std::string& text) const;
  // Appends the next row with the end of its line.
  void AppendRow(std::string& text);

 private:
  base::Rng rng_;
  const char delimiter_;
};

}  // namespace medley::cli
