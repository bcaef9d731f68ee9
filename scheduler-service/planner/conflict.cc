#include "scheduler-service/planner/conflict.h"

#include <algorithm>

#include "common/model/execution_plan.h"
#include "common/model/planning.h"
#include "scheduler-service/cost/evaluate.h"
#include "scheduler-service/cost/problem.h"
#include "scheduler-service/planner/planners.h"

namespace medley::sched {
namespace {

using Set = std::vector<size_t>;  // ascending

bool Hits(const Set& hitting, const Set& set) {
  return std::any_of(set.begin(), set.end(),
                     [&](size_t i) { return std::binary_search(hitting.begin(), hitting.end(), i); });
}

// Depth-first search: the hitting set must contain an element of the first set that is not hit yet.
bool HitWithin(const std::vector<Set>& sets, size_t most, Set& chosen) {
  const auto open = std::find_if(sets.begin(), sets.end(), [&](const Set& set) { return !Hits(chosen, set); });
  if (open == sets.end()) return true;
  if (chosen.size() >= most) return false;
  for (const size_t i : *open) {
    Set next = chosen;
    next.insert(std::upper_bound(next.begin(), next.end(), i), i);
    if (HitWithin(sets, most, next)) {
      chosen = std::move(next);
      return true;
    }
  }
  return false;
}

Set SmallestHittingSet(const std::vector<Set>& sets) {
  for (size_t most = 0;; ++most) {
    Set chosen;
    if (HitWithin(sets, most, chosen)) return chosen;
  }
}

class Search {
 public:
  Search(const model::PlanRequest& request, const std::vector<Constraint>& all, const Budget& budget)
      : request_(request), all_(all), budget_(budget) {}

  Set Run() {
    std::vector<Set> corrections;
    for (;;) {
      const Set hitting = SmallestHittingSet(corrections);
      const auto violated = Violated(hitting);
      if (budget_.Spent()) return {};
      if (!violated) return hitting;
      const Set correction = Shrink(*violated);
      if (correction.empty() || budget_.Spent()) return {};  // a plan meets all constraints
      corrections.push_back(correction);
    }
  }

 private:
  // The constraints that the cheapest plan meeting `kept` violates; nullopt if no plan meets `kept`.
  std::optional<Set> Violated(const Set& kept) const {
    std::vector<Constraint> constraints;
    for (const size_t i : kept) constraints.push_back(all_[i]);
    const auto plan = CheapestPlan(LiftAllBut(request_, all_, constraints), budget_);
    if (!plan) return std::nullopt;
    const auto problem = Problem::Compile(request_);
    if (!problem.ok()) return std::nullopt;
    Set out;
    for (const model::Reason& reason : Evaluate(*problem, plan->stages).violations) {
      for (size_t i = 0; i < all_.size(); ++i) {
        if (IsViolationOf(request_, all_[i], reason)) out.push_back(i);
      }
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }

  // Reduces `violated` to a minimal correction set: without these constraints, a plan can meet all others.
  Set Shrink(Set violated) const {
    for (Set left = violated; !left.empty() && !budget_.Spent();) {
      const size_t candidate = left.front();
      left.erase(left.begin());
      Set with;
      for (size_t i = 0; i < all_.size(); ++i) {
        if (!std::binary_search(violated.begin(), violated.end(), i) || i == candidate) with.push_back(i);
      }
      if (const auto now = Violated(with)) {
        violated = *now;
        left.erase(std::remove_if(left.begin(), left.end(),
                                  [&](size_t i) { return !std::binary_search(violated.begin(), violated.end(), i); }),
                   left.end());
      }
    }
    return violated;
  }

  const model::PlanRequest& request_;
  const std::vector<Constraint>& all_;
  const Budget& budget_;
};

}  // namespace

model::PlanRequest LiftAllBut(model::PlanRequest request, const std::vector<Constraint>& all,
                              const std::vector<Constraint>& kept) {
  for (const Constraint& c : all) {
    if (std::find(kept.begin(), kept.end(), c) == kept.end()) Lift(request, c);
  }
  return request;
}

std::optional<Provisioned> CheapestPlan(const model::PlanRequest& request, const Budget& budget) {
  model::PlanRequest cheapest = request;
  cheapest.objective = model::Objective::kCost;
  const auto problem = Problem::Compile(std::move(cheapest));
  if (!problem.ok()) return std::nullopt;
  const auto solution = MakeExact()->SolveStages(*problem, 0, budget);
  return solution.ok() ? solution->best : std::nullopt;
}

std::vector<Constraint> SmallestConflict(const model::PlanRequest& request, const std::vector<Constraint>& all,
                                         const Budget& budget) {
  std::vector<Constraint> out;
  for (const size_t i : Search(request, all, budget).Run()) out.push_back(all[i]);
  return out;
}

}  // namespace medley::sched
