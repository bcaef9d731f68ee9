#include "cli/run/mix_goal.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <vector>

#include "cli/run/view.h"
#include "common/base/status.h"

namespace medley::cli {
namespace {

constexpr int kFirstPercent = 30, kLastPercent = 96, kStep = 2;  // of `most`: what is tried
constexpr double kMoveSaving = 0.2;     // as a share: a plan that is so much cheaper is worth a move
constexpr double kNearlyTheMost = 0.8;  // of what a mix saves at most

struct Tried {
  double goal = 0;
  double saving = 0;    // of the mix against the cheapest single pool, as a share; 1: no single pool reaches the goal
  bool single = false;  // a single pool reaches it
  bool moves = false;   // at later prices another plan is much cheaper
};

Tried Judge(double goal, const model::PlanResult& result) {
  Tried tried{goal};
  std::optional<double> cheapest;
  for (const model::Alternative& other : result.alternatives) {
    if (other.plan) cheapest = std::min(cheapest.value_or(std::numeric_limits<double>::max()), other.plan->cost_usd);
  }
  tried.single = cheapest.has_value();
  if (!result.plan) return tried;
  std::set<std::string> pools;
  for (const model::ProvisionedStage& stage : result.plan->stages) pools.insert(stage.resource_type);
  if (pools.size() < 2) return tried;
  tried.saving = cheapest ? 1 - result.plan->cost_usd / *cheapest : 1;
  return tried;
}

struct Wanted {
  double saving = 0;  // at least
  bool moves = false;
  bool single = false;
};

// The middle of the longest run of goals that are as wanted; null: none is.
const Tried* MiddleOfLongestRun(const std::vector<Tried>& tried, const Wanted& wanted) {
  size_t longest = 0;
  const Tried* middle = nullptr;
  const auto suits = [&](const Tried& t) {
    return t.saving >= wanted.saving && t.moves == wanted.moves && t.single == wanted.single;
  };
  for (size_t first = 0; first < tried.size();) {
    size_t end = first;
    while (end < tried.size() && suits(tried[end])) ++end;
    if (end - first > longest) {
      longest = end - first;
      middle = &tried[first + longest / 2];
    }
    first = std::max(first + 1, end);
  }
  return middle;
}

std::string Cheaper(const Tried& chosen) {
  return fmt::format("a mix of pools should be {:.0f} % cheaper there than the cheapest single pool",
                     100 * chosen.saving);
}

absl::StatusOr<bool> Moves(double goal, const model::ProvisionedPlan& plan, const LaterPrices& later) {
  MEDLEY_ASSIGN_OR_RETURN(const model::PlanResult then, later.plan(goal));
  return then.plan && then.plan->cost_usd <= (1 - kMoveSaving) * later.cost_usd(plan);
}

}  // namespace

absl::StatusOr<MixGoal> FindMixGoal(double most, double percent, const PlanForGoal& plan,
                                    const std::optional<LaterPrices>& later) {
  std::vector<Tried> tried;
  for (int share = kFirstPercent; share <= kLastPercent; share += kStep) {
    const double goal = std::max(1.0, std::floor(most * share / 100));
    MEDLEY_ASSIGN_OR_RETURN(const model::PlanResult result, plan(goal));
    tried.push_back(Judge(goal, result));
    if (!later || !result.plan) continue;
    MEDLEY_ASSIGN_OR_RETURN(tried.back().moves, Moves(goal, *result.plan, *later));
  }
  const double least = percent / 100;
  double most_with_move = 0;  // that a mix saves where the job moves
  for (const Tried& t : tried) {
    if (t.moves && t.single) most_with_move = std::max(most_with_move, t.saving);
  }
  if (const Tried* chosen = MiddleOfLongestRun(tried, {least, true, true})) {
    return MixGoal{chosen->goal, Cheaper(*chosen), true};
  }
  if (const Tried* chosen = MiddleOfLongestRun(tried, {least, true, false})) {
    return MixGoal{chosen->goal, "no single pool reaches that", true};
  }
  if (most_with_move > 0) {
    const Tried* chosen = MiddleOfLongestRun(tried, {kNearlyTheMost * most_with_move, true, true});
    return MixGoal{chosen->goal,
                   fmt::format("{}, and no goal of which a job moves later saves {:g} %", Cheaper(*chosen), percent),
                   true};
  }
  if (const Tried* chosen = MiddleOfLongestRun(tried, {0, true, true})) {
    return MixGoal{chosen->goal, "a job moves from there when the prices change, though no mix is cheaper", true};
  }
  for (const bool single : {true, false}) {
    if (const Tried* chosen = MiddleOfLongestRun(tried, {least, false, single})) {
      return MixGoal{chosen->goal, single ? Cheaper(*chosen) : "no single pool reaches that", false};
    }
  }
  const Tried& best = *std::ranges::max_element(tried, {}, &Tried::saving);
  if (best.saving <= 0) {
    return base::FailedPrecondition("no goal makes a mix of pools cheaper than a single pool on this machine");
  }
  return base::FailedPrecondition(
      "no goal makes a mix of pools {:g} % cheaper than a single pool on this machine: at best {:.0f} %, at {} "
      "samples/s",
      percent, 100 * best.saving, Thousands(best.goal));
}

}  // namespace medley::cli
