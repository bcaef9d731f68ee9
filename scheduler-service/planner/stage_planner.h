// Planners of units: searches over stages of one type each, which the closed form scores.
#pragma once

#include <absl/status/statusor.h>

#include <optional>
#include <string>
#include <vector>

#include "common/model/reason.h"
#include "scheduler-service/planning/planner.h"
#include "scheduler-service/provision/provisioned.h"

namespace medley::sched {

// What a search over stages has found.
struct Solution {
  // The best plan found. If nullopt and `complete`, a planner that proves optimality has proven the problem infeasible.
  std::optional<Provisioned> best;
  std::optional<double> lower_bound;  // proven, of the objective's value for all feasible plans
  bool complete = true;               // false: the budget ended the search
  bool infeasible = false;            // it was proven before the search that no plan exists,
  std::vector<model::Reason> why;     // perhaps with reasons
  std::string planner;                // that made the plan, if it is not the requested one
  std::string policy;                 // the trained policy as bytes, if the request asks for it
  std::vector<std::string> notes;     // sentences for the answer, for example why another planner made the plan
};

// A planner whose search works on stages. Its plans leave it as execution plans, with the figures of its judge.
class StagePlanner : public Planner {
 public:
  Takes takes() const override { return {.supply = Supply::kUnits, .tables = true}; }
  // The search itself. Errors: as Planner::Solve.
  virtual absl::StatusOr<Solution> SolveStages(const Problem& problem, uint64_t seed, const Budget& budget) const = 0;

 private:
  absl::StatusOr<Candidate> Search(const Question& question, Judge& judge, uint64_t seed,
                                   const Budget& budget) const final;
};

// Reports the best plan so far to who listens.
void Report(const Budget& budget, const Problem& problem, const Provisioned& plan);

}  // namespace medley::sched
