#include "scheduler-service/planner/choice.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "common/base/status.h"
#include "scheduler-service/planner/evaluator.h"

namespace medley::sched {
namespace {

constexpr size_t kListed = 8;
constexpr size_t kSimulated = 6;  // at most, besides those that more units make fast enough
constexpr double kNear = 1.3;     // cost over the cheapest, by the cost model, up to which a plan is simulated
constexpr int64_t kReplicaMicroBatches = 1'000;  // of all simulated plans together, but the first

bool Cheaper(const Provisioned& a, const Provisioned& b) { return a.score.cost < b.score.cost; }

// What simulating a plan takes, roughly: passes of a step.
int64_t EffortOf(const Problem& problem, const Provisioned& plan) {
  int64_t units = 0;
  for (const StageChoice& s : plan.stages) units += s.units;
  return units * std::max(1, problem.request().training.micro_batches);
}

void AddIfFeasible(const Problem& problem, std::vector<StageChoice> stages, std::vector<Provisioned>& out) {
  const Score score = ScoreOf(problem, stages);
  if (KeepsConstraints(problem, stages, score)) out.push_back({std::move(stages), score});
}

void AddProvisioned(const Problem& problem, std::vector<StageChoice> stages, std::vector<Provisioned>& out) {
  if (auto plan = ProvisionExact(problem, std::move(stages))) out.push_back(*std::move(plan));
}

// The same stages with the units for a higher throughput, where the simulator says that they are too slow.
std::optional<Provisioned> Faster(const Problem& problem, const std::vector<StageChoice>& stages, double factor) {
  model::PlanRequest request = problem.request();
  request.constraints.min_throughput = problem.RequiredThroughput() * factor;
  request.constraints.deadline_seconds = 0;
  const auto harder = Problem::Compile(std::move(request));
  return harder.ok() ? ProvisionExact(*harder, stages) : std::nullopt;
}

class Choice {
 public:
  Choice(const Problem& problem, std::stop_token stop)
      : problem_(problem), evaluator_(MakeEvaluator(model::EvaluatorKind::kSimulator, std::move(stop))) {}

  // False if the plan cannot be simulated.
  bool Try(const Provisioned& plan) {
    const auto score = evaluator_->Evaluate(problem_, plan.stages);
    if (!score.ok()) return false;
    ++tried_;
    last_ = *score;
    if (!KeepsConstraints(problem_, plan.stages, *score)) return true;
    if (best_ && score->cost >= simulated_.cost * (1 - kSameCost)) return true;
    best_ = plan;
    simulated_ = *score;
    return true;
  }

  const Score& last() const { return last_; }
  const std::optional<Provisioned>& best() const { return best_; }
  const Score& simulated() const { return simulated_; }
  int tried() const { return tried_; }

 private:
  const Problem& problem_;
  const std::unique_ptr<Evaluator> evaluator_;
  int tried_ = 0;
  Score last_, simulated_;
  std::optional<Provisioned> best_;
};

}  // namespace

void CandidateList::Add(const Provisioned& plan) {
  if (plans_.size() >= kListed && !Cheaper(plan, plans_.back())) return;
  for (const Provisioned& known : plans_) {
    if (known.stages == plan.stages) return;
  }
  plans_.insert(std::upper_bound(plans_.begin(), plans_.end(), plan, Cheaper), plan);
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
      if ((stages[i].units += more) > 0) AddIfFeasible(problem, std::move(stages), out);
    }
    if (i == 0) continue;
    const StageChoice &before = plan.stages[i - 1], &here = plan.stages[i];
    for (const int type : {before.type, here.type}) {
      std::vector<StageChoice> stages = plan.stages;
      stages[i - 1] = {before.first, here.last, type, 0};
      stages.erase(stages.begin() + static_cast<std::ptrdiff_t>(i));
      AddProvisioned(problem, std::move(stages), out);
      if (before.type == here.type) break;
    }
    for (const int shift : {-1, 1}) {
      std::vector<StageChoice> stages = plan.stages;
      stages[i - 1].last += shift;
      stages[i].first += shift;
      if (stages[i - 1].last < stages[i - 1].first || stages[i].last < stages[i].first) continue;
      AddProvisioned(problem, std::move(stages), out);
    }
  }
  return out;
}

std::optional<model::SimulatedPlan> ChooseBySimulator(const Problem& problem, const CandidateList& found, bool widen,
                                                      std::stop_token stop, Solution& solution) {
  Choice choice(problem, std::move(stop));
  const Provisioned first = *solution.best;
  if (!choice.Try(first)) return std::nullopt;
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
  std::stable_sort(candidates.begin(), candidates.end(), Cheaper);
  std::vector<std::vector<StageChoice>> seen = {first.stages};
  int64_t left = kReplicaMicroBatches;
  for (const Provisioned& candidate : candidates) {
    if (seen.size() >= kSimulated || candidate.score.cost > first.score.cost * kNear * std::max(1.0, promised)) break;
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
    return model::SimulatedPlan{of_first.throughput, of_first.cost, choice.tried()};
  }
  if (choice.best()->stages != first.stages) {
    solution.notes.push_back(
        fmt::format("the simulator prefers this plan to the cheapest of the cost model, which costs {:.6g} USD by the "
                    "cost model",
                    first.score.cost));
    solution.best = choice.best();
  }
  return model::SimulatedPlan{choice.simulated().throughput, choice.simulated().cost, choice.tried()};
}

}  // namespace medley::sched
