// Finds in a line of a program's log which step it has finished: spec.program.progress.log.
//
// The expression is RE2's, so a line takes time in proportion to its length whatever the expression is. Immutable,
// thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace re2 {
class RE2;
}

namespace medley::model {

// What a program says of a step that it has finished.
struct StepReport {
  int64_t step = 0;            // from 1
  std::optional<double> loss;  // finite
  bool operator==(const StepReport&) const = default;
};

class ProgressPattern {
 public:
  // Errors: InvalidArgument: it is no expression, or has no group named step.
  static absl::StatusOr<ProgressPattern> Make(const std::string& expression);
  // nullopt: the line is about something else, or its number is no step.
  std::optional<StepReport> Read(std::string_view line) const;

 private:
  ProgressPattern() = default;
  std::shared_ptr<const re2::RE2> expression_;
  int groups_ = 0;
  int step_ = 0;  // numbers of the groups; 0: none
  int loss_ = 0;
};

}  // namespace medley::model
