// The interface of all planners.
//
// A planner is const and thread-safe. It does no I/O and uses only the clock that it is given, unless it says so. The
// same (question, judge, seed) gives the same result unless the time runs out, or the planner is not deterministic().
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string_view>

#include "scheduler-service/options/option.h"
#include "scheduler-service/options/takes.h"
#include "scheduler-service/planning/budget.h"
#include "scheduler-service/planning/judge.h"
#include "scheduler-service/planning/question.h"

namespace medley::sched {

struct Candidate;

class Planner {
 public:
  virtual ~Planner() = default;
  virtual std::string_view name() const = 0;
  virtual std::string_view description() const = 0;
  virtual Takes takes() const = 0;
  virtual bool proves_optimality() const { return false; }
  // What planner.options of a request may have. Solve is called with values that CheckOptions accepts.
  virtual Options options() const { return {}; }
  // False if the same (question, judge, seed) may give another result although the time did not run out.
  virtual bool deterministic() const { return true; }

  // The best plan that was found for a question about the supply that the planner takes. `judge`: of this question.
  // Planners that search report each plan that is their best so far to the budget. Errors: InvalidArgument for a
  // question that this planner cannot handle (too large for brute force, no CPU type, too many devices, ...).
  absl::StatusOr<Candidate> Solve(const Question& question, Judge& judge, uint64_t seed, const Budget& budget) const;
  // By the usual judge of the question.
  absl::StatusOr<Candidate> Solve(const Question& question, uint64_t seed, const Budget& budget) const;

 private:
  virtual absl::StatusOr<Candidate> Search(const Question& question, Judge& judge, uint64_t seed,
                                           const Budget& budget) const = 0;
};

}  // namespace medley::sched
