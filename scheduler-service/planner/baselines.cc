// The baselines of HeterPS, section 6: all layers on one type, or the first layer on a CPU and the rest on a GPU
// (AIBox, BytePS). If a class has several types, the cheapest feasible one is used. Neighbouring stages may share a
// type, as in the plans of every planner.
#include "common/base/status.h"
#include "scheduler-service/cost/problem.h"
#include "scheduler-service/planner/planners.h"
#include "scheduler-service/planner/stage_graph.h"

namespace medley::sched {
namespace {

void Keep(std::optional<Provisioned> plan, Solution& solution) {
  if (plan && (!solution.best || plan->score.cost < solution.best->score.cost)) solution.best = std::move(plan);
}

bool HasTooManyCuts(const Problem& problem) {
  const int64_t layers = problem.layers();
  return layers * (layers + 1) / 2 > kMostPossibleStages;
}

bool HasClass(const Problem& problem, model::ResourceClass cls) {
  for (int t = 0; t < problem.types(); ++t) {
    if (problem.type(t).cls == cls) return true;
  }
  return false;
}

class OneClass final : public StagePlanner {
 public:
  OneClass(std::string_view name, std::string_view description, model::ResourceClass cls)
      : name_(name), description_(description), cls_(cls) {}
  std::string_view name() const override { return name_; }
  std::string_view description() const override { return description_; }
  absl::StatusOr<Solution> SolveStages(const Problem& problem, uint64_t, const Budget& budget) const override {
    if (!HasClass(problem, cls_))
      return base::InvalidArgument("planner.name: planner {} needs at least one resource of its class", name_);
    Solution solution;
    for (int t = 0; t < problem.types(); ++t) {
      if (problem.type(t).cls == cls_) Keep(CheapestOnType(problem, t, budget), solution);
    }
    return solution;
  }

 private:
  const std::string_view name_, description_;
  const model::ResourceClass cls_;
};

class Heuristic final : public StagePlanner {
 public:
  std::string_view name() const override { return "heuristic"; }
  std::string_view description() const override { return "first layer on CPU, the rest on the cheapest feasible GPU"; }
  absl::StatusOr<Solution> SolveStages(const Problem& problem, uint64_t, const Budget& budget) const override {
    if (!HasClass(problem, model::ResourceClass::kCpu) || !HasClass(problem, model::ResourceClass::kGpu)) {
      return base::InvalidArgument("planner.name: planner heuristic needs a CPU and a GPU resource");
    }
    Solution solution;
    for (int first = 0; first < problem.types(); ++first) {
      if (problem.type(first).cls != model::ResourceClass::kCpu) continue;
      for (int rest = 0; rest < problem.types(); ++rest) {
        if (problem.type(rest).cls != model::ResourceClass::kGpu) continue;
        std::vector<int> schedule(static_cast<size_t>(problem.layers()), rest);
        schedule[0] = first;
        Keep(HasTooManyCuts(problem) ? ProvisionExact(problem, StagesOf(schedule))
                                     : CheapestCuts(problem, schedule, budget),
             solution);
      }
    }
    return solution;
  }
};

}  // namespace

std::vector<StageChoice> WholeModelOn(const Problem& problem, int t) { return {{0, problem.layers() - 1, t, 0}}; }

std::optional<Provisioned> SingleType(const Problem& problem, int t) {
  return ProvisionExact(problem, WholeModelOn(problem, t));
}

std::optional<Provisioned> CheapestOnType(const Problem& problem, int t, const Budget& budget) {
  if (HasTooManyCuts(problem)) return SingleType(problem, t);
  for (int layer = 0; layer < problem.layers(); ++layer) {
    if (!problem.Profiled(layer, t)) return std::nullopt;
  }
  return CheapestCuts(problem, std::vector<int>(static_cast<size_t>(problem.layers()), t), budget);
}

std::unique_ptr<StagePlanner> MakeCpuOnly() {
  return std::make_unique<OneClass>("cpu-only", "every layer on the cheapest feasible CPU type",
                                    model::ResourceClass::kCpu);
}
std::unique_ptr<StagePlanner> MakeGpuOnly() {
  return std::make_unique<OneClass>("gpu-only", "every layer on the cheapest feasible GPU type",
                                    model::ResourceClass::kGpu);
}
std::unique_ptr<StagePlanner> MakeHeuristic() { return std::make_unique<Heuristic>(); }

}  // namespace medley::sched
