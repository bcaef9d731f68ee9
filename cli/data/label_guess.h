// Guesses which column a model should predict, the task, and which of two values is the positive one. Pure functions.
#pragma once

#include <absl/status/statusor.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/data/guess.h"
#include "common/model/job_spec.h"

namespace medley::cli {

struct LabelGuess {
  size_t column = 0;
  std::vector<size_t> columns = {};             // of kMultiLabel
  model::Task task = model::Task::kBinary;      // also kRegression, kMultiClass, kMultiLabel
  std::map<std::string, int64_t> classes = {};  // rows by class, of kMultiClass
  std::string positive;                         // the value that counts as 1; empty: the column holds 0 and 1
  std::string negative;                         // the other value; empty: the column holds 0 and 1
  int64_t positives = 0;
  int64_t negatives = 0;
  int64_t missing = 0;                    // rows without a label, which the job leaves out
  std::string why;                        // "its name is 'label'"
  std::vector<std::string> because = {};  // sentences for users
  bool log = false;                       // kRegression: the model should learn the logarithm (transform: Log1p)
  std::optional<size_t> weight = {};      // the column with the weights of rows
  int64_t unweighted = 0;                 // rows without a weight, which the job leaves out

  // Whether the model predicts the column.
  bool Predicts(size_t at) const {
    return columns.empty() ? at == column : std::ranges::find(columns, at) != columns.end();
  }
  // Whether the column is no feature.
  bool Is(size_t at) const { return at == weight || Predicts(at); }
};

// `wanted`: the name or the number of the column, or several with commas between them; empty: it is guessed from names
// and from the number of values. `task`: what the user says; otherwise several columns are a multiLabel task, and two
// values are a binary task; up to 10 numbers or 50 texts that occur twice or more on average are classes; further
// numbers are a regression. Errors: NotFound (no such column, with "did you mean"), InvalidArgument (no column or
// several could be the label; too many different texts; one value).
absl::StatusOr<LabelGuess> GuessLabel(const std::string& path, const TableGuess& table, const std::string& wanted,
                                      std::optional<model::Task> task = std::nullopt);

// Makes the column `wanted` the weights of the rows. Errors: NotFound (no such column); InvalidArgument (a label;
// values that are no weights, or none above 0).
absl::Status UseWeight(const std::string& path, const TableGuess& table, const std::string& wanted, LabelGuess& label);

// Sentences about columns whose names are those of weights of rows, and that are features.
std::vector<std::string> FindWeights(const TableGuess& table, const LabelGuess& label);

// The columns of a list with commas. Errors: NotFound (no such column, with "did you mean").
absl::StatusOr<std::vector<size_t>> FindListed(const std::string& path, const TableGuess& table,
                                               const std::string& list);

// Sentences about features that tell the label, and may not be known when a model predicts.
std::vector<std::string> FindLeaks(const TableGuess& table, const LabelGuess& label);

// Checks that a column other than the label can be a feature. Errors: InvalidArgument.
absl::Status CheckFeatures(const std::string& path, const TableGuess& table, const LabelGuess& label);

}  // namespace medley::cli
