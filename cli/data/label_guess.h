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

  // Whether the model predicts the column.
  bool Is(size_t at) const { return columns.empty() ? at == column : std::ranges::find(columns, at) != columns.end(); }
};

// `wanted`: the name or the number of the column, or several with commas between them; empty: it is guessed from names
// and from the number of values. `task`: what the user says; otherwise several columns are a multiLabel task, and two
// values are a binary task; up to 10 numbers or 50 texts that occur twice or more on average are classes; further
// numbers are a regression. Errors: NotFound (no such column, with "did you mean"), InvalidArgument (no column or
// several could be the label; too many different texts; one value).
absl::StatusOr<LabelGuess> GuessLabel(const std::string& path, const TableGuess& table, const std::string& wanted,
                                      std::optional<model::Task> task = std::nullopt);

// The columns of a list with commas. Errors: NotFound (no such column, with "did you mean").
absl::StatusOr<std::vector<size_t>> FindListed(const std::string& path, const TableGuess& table,
                                               const std::string& list);

// Sentences about features that tell the label, and may not be known when a model predicts.
std::vector<std::string> FindLeaks(const TableGuess& table, const LabelGuess& label);

// Checks that a column other than the label can be a feature. Errors: InvalidArgument.
absl::Status CheckFeatures(const std::string& path, const TableGuess& table, const LabelGuess& label);

}  // namespace medley::cli
