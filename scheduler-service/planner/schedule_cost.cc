#include "scheduler-service/planner/schedule_cost.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/base/hash.h"
#include "scheduler-service/cost/evaluate.h"
#include "scheduler-service/planner/planners.h"

namespace medley::sched {
namespace {

constexpr size_t kMostKnown = 1 << 18;
constexpr int kUnbounded = 1'000'000'000;
constexpr double kLeast = 1e-12;
constexpr double kNearlyBest = 1.15;  // cost over the best, uncut, up to which the cuts of a schedule are searched
constexpr int kMostCutInfeasible = 64;
constexpr int64_t kMostCutEffort = 4'000'000;  // possible stages, some seconds

// Logarithm of the ratio by which `needed` exceeds `available`; 0 if it does not.
double Over(double needed, double available) {
  if (needed <= available) return 0;
  return std::log(std::max(needed, kLeast) / std::max(available, std::min(needed, 1.0) * 0.1));
}

// Sets the units for the required throughput, ignoring limits. Adds violations of memory and throughput to `over`.
void SmallestUnits(const Problem& of, std::vector<StageChoice>& stages, double& over) {
  const Problem problem = of.ForStages(static_cast<int>(stages.size()));
  const double required = problem.RequiredThroughput();
  for (size_t i = 0; i < stages.size(); ++i) {
    StageChoice& s = stages[i];
    const PlacedTerms terms = problem.TermsIn(stages, i);
    const double memory = problem.type(s.type).memory_bytes;
    if (memory > 0) over += Over(problem.LocalBytes(s.first, s.last, s.type), memory);
    s.units = problem.MinUnits(terms, required, kUnbounded);
    if (s.units > 0) continue;
    over += Over(required, problem.Throughput(terms, kUnbounded));
    s.units = std::max(problem.min_units(), problem.limit(s.type));
  }
}

double ConstraintsOver(const Problem& problem, const std::vector<StageChoice>& stages, const Score& score) {
  double over = 0;
  const std::vector<int> used = UnitsByType(problem, stages, score.server_units);
  for (int t = 0; t < problem.types(); ++t) over += Over(used[static_cast<size_t>(t)], problem.limit(t));
  const model::Constraints& c = problem.request().constraints;
  double trainers = 0;
  for (const StageChoice& s : stages) trainers += s.units;
  if (c.max_units > 0) over += Over(trainers, c.max_units);
  if (c.max_cost_per_hour > 0) over += Over(score.hourly, c.max_cost_per_hour);
  if (c.budget_usd > 0) over += Over(score.cost, c.budget_usd);
  return over;
}

}  // namespace

double ScheduleCost::best_value() const {
  return best_ ? std::log(std::max(best_->score.cost, kLeast)) : std::numeric_limits<double>::infinity();
}

double ScheduleCost::Of(const std::vector<int>& schedule) {
  const std::string_view bytes(reinterpret_cast<const char*>(schedule.data()), schedule.size() * sizeof(int));
  const uint64_t key = base::Hash64(bytes);
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  ++provisioned_;
  double value = 0;
  const std::vector<StageChoice> runs = StagesOf(schedule);
  auto plan = ProvisionExact(problem_, runs);
  if (WorthCutting(runs, plan)) {
    if (auto cut = CheapestCuts(problem_, schedule, *budget_)) plan = std::move(cut);
  }
  if (plan) {
    value = std::log(std::max(plan->score.cost, kLeast));
    if (!best_ || plan->score.cost < best_->score.cost) {
      best_ = std::move(plan);
      best_schedule_ = schedule;
      if (budget_ != nullptr) Report(*budget_, problem_, *best_);
    }
  } else {
    value = Grade(schedule);
  }
  if (known_.size() >= kMostKnown) known_.clear();
  known_.emplace(key, value);
  return value;
}

bool ScheduleCost::WorthCutting(const std::vector<StageChoice>& stages, const std::optional<Provisioned>& uncut) {
  if (budget_ == nullptr || stages.size() == static_cast<size_t>(problem_.layers())) return false;
  const bool near = uncut && (!best_ || uncut->score.cost < best_->score.cost * kNearlyBest);
  if (!near && (uncut || best_ || ++cut_infeasible_ > kMostCutInfeasible)) return false;
  for (const StageChoice& s : stages) cut_effort_ += int64_t{s.last - s.first + 1} * (s.last - s.first + 2) / 2;
  return cut_effort_ <= kMostCutEffort;
}

double ScheduleCost::Grade(const std::vector<int>& schedule) const {
  std::vector<StageChoice> stages = StagesOf(schedule);
  double over = 0;
  SmallestUnits(problem_, stages, over);
  const Score score = ScoreOf(problem_, stages);
  over += ConstraintsOver(problem_, stages, score);
  const double value = std::log(std::max(score.cost, kLeast)) + kPenalty + over;
  return std::isfinite(value) ? value : std::log(std::numeric_limits<double>::max());
}

}  // namespace medley::sched
