// The last choice of a plan of units: by the simulator, among the best candidates of a search by the closed form, for
// every objective.
//
// Pure functions; a CandidateList is not thread-safe.
#pragma once

#include <optional>
#include <stop_token>
#include <vector>

#include "common/model/plan_result.h"
#include "common/model/planning.h"
#include "scheduler-service/planner/stage_planner.h"
#include "scheduler-service/planning/question.h"

namespace medley::sched {

// The best of the plans that a search found, all of different stages.
class CandidateList {
 public:
  // The problem must outlive it.
  explicit CandidateList(const Problem& problem) : problem_(problem) {}
  void Add(const Provisioned& plan);
  // The best by the objective of the problem's request first.
  const std::vector<Provisioned>& plans() const { return plans_; }

 private:
  const Problem& problem_;
  std::vector<Provisioned> plans_;
};

// True if the request says what the simulator needs: the number of micro-batches, or an asynchronous schedule.
bool CanSimulate(const model::PlanRequest& request);

// Plans near `plan`: a stage has one unit more or less, begins one layer later or earlier, or is one with its
// neighbour; changed stages have the units that suit the objective. All meet the constraints of the closed form.
std::vector<Provisioned> PlansAround(const Problem& problem, const Provisioned& plan);

struct SimulatedChoice {
  std::optional<model::SimulatedPlan> figures;  // of solution.best; nullopt: it cannot be simulated
  bool chose = false;                           // false: solution.best is that of the closed form
};

// Simulates solution.best and the best of `found` and, with `widen`, of the plans around solution.best, and puts the
// one into `solution` that is best in the simulator and keeps the constraints there. If none does, solution.best stays,
// and a note says so. Which plans are simulated depends on the question and the candidates only.
SimulatedChoice ChooseBySimulator(const Question& question, const CandidateList& found, bool widen,
                                  std::stop_token stop, Solution& solution);

}  // namespace medley::sched
