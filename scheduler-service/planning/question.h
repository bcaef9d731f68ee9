// What every planner is asked: a request, compiled for search. Immutable, thread-safe.
//
// A question is about units of resource types that a plan buys, or about the devices of a cluster. Both have the same
// request with one objective and any bounds; what is compiled differs, because searches over units need sums by type
// and searches over devices need the links between them.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <optional>

#include "common/model/forward.h"
#include "scheduler-service/devices/figures.h"
#include "scheduler-service/options/takes.h"

namespace medley::sched {

class DeviceProblem;
class Problem;

class Question {
 public:
  Question(Problem problem);        // NOLINT(google-explicit-constructor)
  Question(DeviceProblem problem);  // NOLINT(google-explicit-constructor)
  // Errors: those of Problem::Compile or of DeviceProblem::Compile.
  static absl::StatusOr<Question> Compile(model::PlanRequest request);

  const model::PlanRequest& request() const;
  Supply supply() const { return units_ != nullptr ? Supply::kUnits : Supply::kDevices; }
  const Problem& units() const { return *units_; }            // only of this supply
  const DeviceProblem& devices() const { return *devices_; }  // only of this supply
  double samples() const;                                     // of a step

  // FailedPrecondition if `plan` breaks a bound of the request. Without `figures` only bounds that need no time.
  absl::Status CheckBounds(const model::ExecutionPlan& plan, const std::optional<Figures>& figures) const;

 private:
  // One of both. Copies share it.
  std::shared_ptr<const Problem> units_;
  std::shared_ptr<const DeviceProblem> devices_;
};

}  // namespace medley::sched
