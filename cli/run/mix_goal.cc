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
constexpr double kMoveSaving = 0.2;  // as a share: a plan that is so much cheaper is worth a move

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

// The longest run of goals that save enough, [first, end).
std::pair<size_t, size_t> LongestRun(const std::vector<Tried>& tried, double least, bool moves, bool single) {
  std::pair<size_t, size_t> longest{0, 0};
  const auto suits = [&](const Tried& t) { return t.saving >= least && t.moves == moves && t.single == single; };
  for (size_t first = 0; first < tried.size();) {
    size_t end = first;
    while (end < tried.size() && suits(tried[end])) ++end;
    if (end - first > longest.second - longest.first) longest = {first, end};
    first = std::max(first + 1, end);
  }
  return longest;
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
    if (!later || tried.back().saving < percent / 100) continue;
    MEDLEY_ASSIGN_OR_RETURN(tried.back().moves, Moves(goal, *result.plan, *later));
  }
  for (const auto& [moves, single] : {std::pair{true, true}, {true, false}, {false, true}, {false, false}}) {
    const auto [first, end] = LongestRun(tried, percent / 100, moves, single);
    if (first == end) continue;
    const Tried& chosen = tried[first + (end - first) / 2];
    return MixGoal{chosen.goal,
                   single ? fmt::format("a mix of pools should be {:.0f} % cheaper there than the cheapest single pool",
                                        100 * chosen.saving)
                          : std::string("no single pool reaches that")};
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
