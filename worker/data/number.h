// What the text of a field is: a number, a missing value, or other text. `medley init`, training and predictions all
// ask here. Immutable, thread-safe.
#pragma once

#include <absl/status/status.h>

#include <string>
#include <string_view>
#include <vector>

namespace medley::worker {

enum class ValueKind { kNumber, kMissing, kText };

struct Value {
  ValueKind kind = ValueKind::kText;
  double number = 0;  // finite; NaN when the value is missing
};

class ValueReader {
 public:
  // `missing`: spec.data.schema.missing, texts that mean a missing value beside those of IsMissingText. One that is a
  // number means every text of this number: -999 also means -999.0.
  explicit ValueReader(const std::vector<std::string>& missing = {});

  // Numbers are decimal, with an exponent or not and with a sign or not, or have commas between all thousands:
  // "1,234.5". One that is nearer to 0 than a double can be is 0; one that is further away is text, as infinity is.
  // Blanks around the text do not count.
  Value Read(std::string_view text) const;
  // The same for a number that was not written as text. NaN is missing.
  Value Of(double number) const;

  // The number, or NaN for a missing value. Errors: InvalidArgument naming the column.
  absl::Status ReadNumber(std::string_view text, int column, double& number) const;

 private:
  bool IsOwnMissing(std::string_view text) const;

  std::vector<std::string> texts_;
  std::vector<double> numbers_;
};

// The texts that pandas takes for missing values, in upper or lower case, and ? and -.
bool IsMissingText(std::string_view text);
// All of these in lower case.
std::vector<std::string> MissingTexts();

}  // namespace medley::worker
