// The last choice of a plan: by the simulator, among the best candidates of a search by the cost model.
//
// Pure functions; a CandidateList is not thread-safe.
#pragma once

#include <optional>
#include <stop_token>
#include <vector>

#include "common/model/planning.h"
#include "scheduler-service/planner/planner.h"

namespace medley::sched {

// The cheapest of the plans that a search found, all of different stages.
class CandidateList {
 public:
  void Add(const Provisioned& plan);
  // Cheapest first.
  const std::vector<Provisioned>& plans() const { return plans_; }

 private:
  std::vector<Provisioned> plans_;
};

// True if the request says what the simulator needs: the number of micro-batches, or an asynchronous schedule.
bool CanSimulate(const model::PlanRequest& request);

// Plans near `plan`: a stage has one unit more or less, begins one layer later or earlier, or is one with its
// neighbour. All meet the constraints of the cost model.
std::vector<Provisioned> PlansAround(const Problem& problem, const Provisioned& plan);

// Simulates solution.best and the cheapest of `found` and, with `widen`, of the plans around solution.best, and puts
// the cheapest one in the simulator into `solution` that keeps the constraints there. If none does, solution.best
// stays, and a note says so. Which plans are simulated depends on the problem and the candidates only. nullopt, and no
// change: solution.best cannot be simulated.
std::optional<model::SimulatedPlan> ChooseBySimulator(const Problem& problem, const CandidateList& found, bool widen,
                                                      std::stop_token stop, Solution& solution);

}  // namespace medley::sched
