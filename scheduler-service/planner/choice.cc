#include "scheduler-service/planner/choice.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "common/base/status.h"
#include "scheduler-service/cost/evaluate.h"
#include "scheduler-service/cost/problem.h"
#include "scheduler-service/planner/execution_plan.h"
#include "scheduler-service/planner/objectives.h"
#include "scheduler-service/planning/judge.h"
#include "scheduler-service/planning/stages.h"
#include "scheduler-service/provision/exact.h"

namespace medley::sched {
namespace {

constexpr size_t kListed = 8;
constexpr size_t kSimulated = 6;  // at most, besides those that more units make fast enough
constexpr double kNear = 1.3;     // value over the best, by the closed form, up to which a plan is simulated
constexpr int64_t kReplicaMicroBatches = 1'000;  // of all simulated plans together, but the first
constexpr int kMostAdded = 1'000;                // units, one after the other, to the slowest stage

double Value(const Problem& problem, const Provisioned& plan) {
  return ValueOf(problem, plan, problem.request().objective);
}

// What simulating a plan takes, roughly: passes of a step.
int64_t EffortOf(const Problem& problem, const Provisioned& plan) {
  int64_t units = 0;
  for (const StageChoice& s : plan.stages) units += s.units;
  return units * std::max(1, problem.request().training.micro_batches);
}

std::optional<Provisioned> IfFeasible(const Problem& problem, std::vector<StageChoice> stages) {
  const Score score = ScoreOf(problem, stages);
  if (!KeepsConstraints(problem, stages, score)) return std::nullopt;
  return Provisioned{std::move(stages), score};
}

// The fewest units that reach the required throughput cost least per hour.
std::optional<Provisioned> FewestUnits(const Problem& problem, std::vector<StageChoice> stages) {
  const Problem of = problem.ForStages(static_cast<int>(stages.size()));
  for (size_t i = 0; i < stages.size(); ++i) {
    StageChoice& s = stages[i];
    s.units = of.MinUnits(of.TermsIn(stages, i), problem.RequiredThroughput(), problem.limit(s.type));
    if (s.units == 0) return std::nullopt;
  }
  return IfFeasible(problem, std::move(stages));
}

// More units for the slowest stage, while the constraints allow it.
std::optional<Provisioned> Fastest(const Problem& problem, std::vector<StageChoice> stages) {
  std::optional<Provisioned> best = ProvisionExact(problem, std::move(stages));
  if (!best) return best;
  const Problem of = problem.ForStages(static_cast<int>(best->stages.size()));
  for (int added = 0; added < kMostAdded; ++added) {
    std::vector<StageChoice> more = best->stages;
    size_t slowest = 0;
    double least = kInfinity;
    for (size_t i = 0; i < more.size(); ++i) {
      const double throughput = of.Throughput(of.TermsIn(more, i), more[i].units);
      if (throughput < least) slowest = i;
      least = std::min(least, throughput);
    }
    ++more[slowest].units;
    auto faster = IfFeasible(problem, std::move(more));
    if (!faster || faster->score.throughput <= best->score.throughput) break;
    best = std::move(faster);
  }
  return best;
}

// The stages with the units that suit the objective.
std::optional<Provisioned> Provision(const Problem& problem, std::vector<StageChoice> stages) {
  switch (problem.request().objective) {
    case model::Objective::kCost:
      return ProvisionExact(problem, std::move(stages));
    case model::Objective::kCostPerHour:
      return FewestUnits(problem, std::move(stages));
    case model::Objective::kStepTime:
    case model::Objective::kTime:
      break;
  }
  return Fastest(problem, std::move(stages));
}

void Keep(std::optional<Provisioned> plan, std::vector<Provisioned>& out) {
  if (plan) out.push_back(*std::move(plan));
}

// The same stages with the units for a higher throughput, where the simulator says that they are too slow.
std::optional<Provisioned> Faster(const Problem& problem, const std::vector<StageChoice>& stages, double factor) {
  model::PlanRequest request = problem.request();
  request.constraints.min_throughput = problem.RequiredThroughput() * factor;
  request.constraints.deadline_seconds = 0;
  const auto harder = Problem::Compile(std::move(request));
  return harder.ok() ? Provision(*harder, stages) : std::nullopt;
}

// The plan that is best in the simulator.
class Simulated {
 public:
  Simulated(const Question& question, std::stop_token stop)
      : problem_(question.units()), judge_(MakeSimulator(question, std::move(stop))) {}

  // False if the plan cannot be simulated.
  bool Try(const Provisioned& plan) {
    const auto figures = judge_->Of(BuildExecutionPlan(problem_, plan.stages));
    if (!figures.ok()) return false;
    ++tried_;
    last_ = ScoreIn(problem_, plan.stages, *figures);
    if (!KeepsConstraints(problem_, plan.stages, last_)) return true;
    if (best_ && !IsBetterThanBest(plan)) return true;
    best_ = plan;
    simulated_ = last_;
    return true;
  }

  const Score& last() const { return last_; }
  const std::optional<Provisioned>& best() const { return best_; }
  const Score& simulated() const { return simulated_; }
  int tried() const { return tried_; }

 private:
  bool IsBetterThanBest(const Provisioned& plan) const {
    const model::Objective objective = problem_.request().objective;
    if (objective == model::Objective::kCost) return last_.cost < simulated_.cost * (1 - kSameCost);
    return IsBetter(problem_, {plan.stages, last_}, {best_->stages, simulated_}, objective);
  }

  const Problem& problem_;
  const std::unique_ptr<Judge> judge_;
  int tried_ = 0;
  Score last_, simulated_;
  std::optional<Provisioned> best_;
};

// Why the plan is another one than `first`, which the search found.
std::string PreferenceNote(const Problem& problem, const Provisioned& first) {
  const double value = Value(problem, first);
  switch (problem.request().objective) {
    case model::Objective::kCost:
      return fmt::format(
          "the simulator prefers this plan to the cheapest of the cost model, which costs {:.6g} USD by the cost model",
          value);
    case model::Objective::kCostPerHour:
      return fmt::format(
          "the simulator prefers this plan to the one of the least USD per hour by the cost model, which costs {:.6g} "
          "USD/h",
          value);
    case model::Objective::kStepTime:
    case model::Objective::kTime:
      break;
  }
  return fmt::format(
      "the simulator prefers this plan to the fastest of the cost model, which takes {:.6g} s to the end by the cost "
      "model",
      value);
}

}  // namespace

void CandidateList::Add(const Provisioned& plan) {
  const auto better = [&](const Provisioned& a, const Provisioned& b) {
    return Value(problem_, a) < Value(problem_, b);
  };
  if (plans_.size() >= kListed && !better(plan, plans_.back())) return;
  for (const Provisioned& known : plans_) {
    if (known.stages == plan.stages) return;
  }
  plans_.insert(std::upper_bound(plans_.begin(), plans_.end(), plan, better), plan);
  if (plans_.size() > kListed) plans_.pop_back();
}

bool CanSimulate(const model::PlanRequest& request) {
  return request.training.micro_batches > 0 || request.planner.asynchronous();
}

std::vector<Provisioned> PlansAround(const Problem& problem, const Provisioned& plan) {
  std::vector<Provisioned> out;
  for (size_t i = 0; i < plan.stages.size(); ++i) {
    for (const int more : {1, -1}) {
      std::vector<StageChoice> stages = plan.stages;
      if ((stages[i].units += more) > 0) Keep(IfFeasible(problem, std::move(stages)), out);
    }
    if (i == 0) continue;
    const StageChoice &before = plan.stages[i - 1], &here = plan.stages[i];
    for (const int type : {before.type, here.type}) {
      std::vector<StageChoice> stages = plan.stages;
      stages[i - 1] = {before.first, here.last, type, 0};
      stages.erase(stages.begin() + static_cast<std::ptrdiff_t>(i));
      Keep(Provision(problem, std::move(stages)), out);
      if (before.type == here.type) break;
    }
    for (const int shift : {-1, 1}) {
      std::vector<StageChoice> stages = plan.stages;
      stages[i - 1].last += shift;
      stages[i].first += shift;
      if (stages[i - 1].last < stages[i - 1].first || stages[i].last < stages[i].first) continue;
      Keep(Provision(problem, std::move(stages)), out);
    }
  }
  return out;
}

SimulatedChoice ChooseBySimulator(const Question& question, const CandidateList& found, bool widen,
                                  std::stop_token stop, Solution& solution) {
  const Problem& problem = question.units();
  Simulated choice(question, std::move(stop));
  const Provisioned first = *solution.best;
  if (!choice.Try(first)) return {};
  const Score of_first = choice.last();
  const double promised = first.score.throughput / of_first.throughput;
  std::vector<Provisioned> candidates = found.plans();
  if (widen) {
    for (Provisioned& plan : PlansAround(problem, first)) candidates.push_back(std::move(plan));
  }
  // The plan of the search with more units, where it is slower than promised and that breaks a constraint.
  if (promised > 1 && problem.RequiredThroughput() > 0) {
    if (auto faster = Faster(problem, first.stages, promised))
      candidates.insert(candidates.begin(), *std::move(faster));
  }
  std::ranges::stable_sort(candidates, {}, [&](const Provisioned& plan) { return Value(problem, plan); });
  std::vector<std::vector<StageChoice>> seen = {first.stages};
  int64_t left = kReplicaMicroBatches;
  const double most = Value(problem, first) * kNear * std::max(1.0, promised);
  for (const Provisioned& candidate : candidates) {
    if (seen.size() >= kSimulated || Value(problem, candidate) > most) break;
    if (std::find(seen.begin(), seen.end(), candidate.stages) != seen.end()) continue;
    const int64_t effort = EffortOf(problem, candidate);
    if (effort > left) continue;
    left -= effort;
    seen.push_back(candidate.stages);
    choice.Try(candidate);
  }
  if (!choice.best()) {
    solution.notes.push_back(fmt::format(
        "in the simulator none of {} candidates keeps the constraints: the plan is the best of the cost model",
        choice.tried()));
    return {model::SimulatedPlan{of_first.throughput, of_first.cost, choice.tried()}, false};
  }
  if (choice.best()->stages != first.stages) {
    solution.notes.push_back(PreferenceNote(problem, first));
    solution.best = choice.best();
  }
  return {model::SimulatedPlan{choice.simulated().throughput, choice.simulated().cost, choice.tried()}, true};
}

}  // namespace medley::sched
