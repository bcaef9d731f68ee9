// Neighbouring stages of one type: the cuts inside runs of given types, and the planners and answers that have them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <limits>

#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/base/testing/fake_clock.h"
#include "common/base/testing/status_matchers.h"
#include "common/model/plan_result.h"
#include "common/model/planning.h"
#include "common/model/resource.h"
#include "common/model/value_text.h"
#include "scheduler-service/planner/builtin.h"
#include "scheduler-service/planner/plan.h"
#include "scheduler-service/planner/planners.h"
#include "scheduler-service/planning/candidate.h"
#include "scheduler-service/planning/stages.h"
#include "scheduler-service/provision/exact.h"
#include "tests/unit/scheduler-service/planner/adversarial_request.h"

namespace medley::sched {
namespace {

std::vector<int> SomeSchedule(const Problem& problem, base::Rng& rng) {
  std::vector<int> schedule;
  for (int layer = 0; layer < problem.layers(); ++layer) {
    const int other = static_cast<int>(rng.Below(static_cast<uint64_t>(problem.types())));
    const bool changes = layer == 0 || rng.Below(3) == 0;
    int type = changes ? other : schedule.back();
    while (!problem.Profiled(layer, type)) type = (type + 1) % problem.types();
    schedule.push_back(type);
  }
  return schedule;
}

// Provisions every way to cut the runs of `schedule`.
std::optional<Provisioned> BestOfAllCuts(const Problem& problem, const std::vector<int>& schedule) {
  std::optional<Provisioned> best;
  for (uint64_t mask = 0; mask < uint64_t{1} << (schedule.size() - 1); ++mask) {
    std::vector<StageChoice> stages = {{0, 0, schedule[0], 0}};
    for (size_t i = 1; i < schedule.size(); ++i) {
      const int layer = static_cast<int>(i);
      if (schedule[i] == schedule[i - 1] && (mask >> (i - 1) & 1) == 0) {
        stages.back().last = layer;
      } else {
        stages.push_back({layer, layer, schedule[i], 0});
      }
    }
    auto plan = ProvisionExact(problem, stages);
    if (plan && (!best || plan->score.cost < best->score.cost)) best = std::move(plan);
  }
  return best;
}

bool HasNeighbours(const std::vector<StageChoice>& stages) {
  return std::adjacent_find(stages.begin(), stages.end(), [](const StageChoice& a, const StageChoice& b) {
           return a.type == b.type;
         }) != stages.end();
}

class CutsTest : public testing::Test {
 protected:
  base::FakeClock clock_;
  const Budget unlimited_{clock_, base::SteadyTime::max(), {}};
};

TEST_F(CutsTest, AreTheCheapestOfAll) {
  int feasible = 0, cut = 0, only_cut = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    const Problem problem =
        Problem::Compile(AdversarialRequest(seed, {.most_layers = 7, .boundaries = true, .links = seed % 2 == 0}))
            .value();
    base::Rng rng(seed);
    const std::vector<int> schedule = SomeSchedule(problem, rng);
    const auto truth = BestOfAllCuts(problem, schedule);
    const auto found = CheapestCuts(problem, schedule, unlimited_);
    ASSERT_EQ(found.has_value(), truth.has_value());
    if (!truth) continue;
    ++feasible;
    EXPECT_NEAR(found->score.cost, truth->score.cost, 1e-9 * truth->score.cost);
    for (const StageChoice& s : found->stages) {
      for (int layer = s.first; layer <= s.last; ++layer) EXPECT_EQ(s.type, schedule[static_cast<size_t>(layer)]);
    }
    cut += HasNeighbours(found->stages) ? 1 : 0;
    only_cut += ProvisionExact(problem, StagesOf(schedule)) ? 0 : 1;
  }
  std::printf("seeds 1..300: %d feasible, %d with cuts, %d only with cuts\n", feasible, cut, only_cut);
  EXPECT_GE(feasible, 50);
  EXPECT_GE(cut, 20);
  EXPECT_GE(only_cut, 3);
}

// A policy gives a type per layer; its runs are cut. The same holds for the other planners that evaluate schedules.
TEST_F(CutsTest, PlannersThatEvaluateSchedulesFindThem) {
  for (const std::string_view name : {"rl-lstm", "greedy"}) {
    SCOPED_TRACE(name);
    const Registry planners = BuiltinPlanners();
    const Planner* planner = planners.Find(name, Supply::kUnits);
    ASSERT_NE(planner, nullptr);
    int cut = 0;
    for (uint64_t seed = 1; seed <= 40; ++seed) {
      model::PlanRequest request = RandomRequest(seed, {});
      if (name == "rl-lstm") request.planner.options = {{"rounds", 3.}};
      const Problem problem = Problem::Compile(request).value();
      const auto solution = planner->Solve(problem, 1, unlimited_);
      ASSERT_THAT(solution, base::IsOk());
      if (solution->plan) cut += HasNeighbours(StagesOf(problem, *solution->plan).value()) ? 1 : 0;
    }
    EXPECT_GE(cut, 4);
  }
}

// The baselines fix the type of each layer; inside its runs they cut as all planners do.
TEST_F(CutsTest, BaselinesFindTheCheapest) {
  const Registry planners = BuiltinPlanners();
  for (const std::string_view name : {"heuristic", "cpu-only", "gpu-only"}) {
    SCOPED_TRACE(name);
    int feasible = 0, cut = 0;
    for (uint64_t seed = 1; seed <= 60; ++seed) {
      SCOPED_TRACE(seed);
      const Problem problem = Problem::Compile(RandomRequest(seed, {.most_layers = 6})).value();
      std::optional<Provisioned> truth;
      bool cpu = false, gpu = false;
      const auto offer = [&](const std::vector<int>& schedule) {
        for (size_t i = 0; i < schedule.size(); ++i) {
          if (!problem.Profiled(static_cast<int>(i), schedule[i])) return;
        }
        auto plan = BestOfAllCuts(problem, schedule);
        if (plan && (!truth || plan->score.cost < truth->score.cost)) truth = std::move(plan);
      };
      for (int t = 0; t < problem.types(); ++t) {
        const bool is_cpu = problem.type(t).cls == model::ResourceClass::kCpu;
        (is_cpu ? cpu : gpu) = true;
        std::vector<int> schedule(static_cast<size_t>(problem.layers()), t);
        if (name == (is_cpu ? "cpu-only" : "gpu-only")) offer(schedule);
        for (int first = 0; first < problem.types() && !is_cpu && name == "heuristic"; ++first) {
          if (problem.type(first).cls != model::ResourceClass::kCpu) continue;
          schedule[0] = first;
          offer(schedule);
        }
      }
      const bool asks = (cpu || name == "gpu-only") && (gpu || name == "cpu-only");
      const auto solution = planners.Find(name, Supply::kUnits)->Solve(problem, 1, unlimited_);
      ASSERT_EQ(solution.ok(), asks);
      if (!asks) continue;
      ASSERT_EQ(solution->plan.has_value(), truth.has_value());
      if (!truth) continue;
      ++feasible;
      EXPECT_NEAR(solution->figures.usd, truth->score.cost, 1e-9 * truth->score.cost);
      cut += HasNeighbours(truth->stages) ? 1 : 0;
    }
    std::printf("%s: %d feasible, %d with cuts\n", std::string(name).c_str(), feasible, cut);
    EXPECT_GE(feasible, 5);
    EXPECT_GE(cut, 1);
  }
}

model::PlanRequest Example(const std::string& name) {
  const char* source = std::getenv("MEDLEY_SOURCE_DIR");
  const auto text =
      base::ReadFile((source == nullptr ? std::string(".") : source) + "/examples/plan/" + name + ".yaml");
  EXPECT_THAT(text, base::IsOk());
  return model::ParsePlanRequest(*text).value();
}

// The cheapest plan of at most four runs of layers, each of another type than the one before.
double CheapestOfRuns(const model::PlanRequest& request) {
  const Problem problem = Problem::Compile(request).value();
  double least = std::numeric_limits<double>::infinity();
  std::vector<int> schedule(static_cast<size_t>(problem.layers()));
  const std::function<void(int, int, int)> from = [&](int layer, int before, int runs) {
    for (int t = 0; t < problem.types(); ++t) {
      if (t == before) continue;
      for (int end = layer + 1; end <= problem.layers(); ++end) {
        if (end < problem.layers() && runs == 1) continue;
        for (int l = layer; l < end; ++l) schedule[static_cast<size_t>(l)] = t;
        if (end < problem.layers()) {
          from(end, t, runs - 1);
        } else if (const auto plan = ProvisionExact(problem, StagesOf(schedule))) {
          least = std::min(least, plan->score.cost);
        }
      }
    }
  };
  from(0, -1, 4);
  return least;
}

// The optimum of `request`, with its certificate. `stages`: its stages.
double OptimalUsd(const model::PlanRequest& request, std::vector<StageChoice>& stages) {
  const base::FakeClock clock;
  const Problem problem = Problem::Compile(request).value();
  const auto found = MakeExact()->SolveStages(problem, 0, Budget(clock, base::SteadyTime::max(), {}));
  EXPECT_THAT(found, base::IsOk());
  EXPECT_TRUE(found->complete);
  if (!found->best) return 0;
  EXPECT_EQ(*found->lower_bound, found->best->score.cost);
  stages = found->best->stages;
  return found->best->score.cost;
}

// The figures of docs/design/planning.md: what neighbouring stages of one type save, and what is left of it where a
// pipeline fills and drains.
TEST_F(CutsTest, ExamplesSaveAThird) {
  struct Row {
    const char* name;
    double runs;     // USD, the cheapest plan without neighbours of one type
    double cut;      // USD, the optimum
    double filling;  // USD, the optimum with 16 micro-batches
  };
  for (const Row& row : {Row{"ctrdnn-16", 0.0505, 0.0327, 0.0359}, Row{"2emb-10", 0.0244, 0.0156, 0.0257}}) {
    SCOPED_TRACE(row.name);
    model::PlanRequest request = Example(row.name);
    request.resources[0].limit = 480;
    std::vector<StageChoice> stages;
    const double runs = CheapestOfRuns(request), cut = OptimalUsd(request, stages);
    EXPECT_NEAR(runs, row.runs, 5e-5);
    EXPECT_NEAR(cut, row.cut, 5e-5);
    EXPECT_NEAR(1 - cut / runs, 0.355, 0.01);
    EXPECT_TRUE(HasNeighbours(stages));
    request.training.micro_batches = 16;
    EXPECT_NEAR(OptimalUsd(request, stages), row.filling, 5e-5);
    EXPECT_TRUE(HasNeighbours(stages));
  }
}

// Three stages of cores need 33 of them, with servers; the example has 28, so that it stays a mix.
TEST_F(CutsTest, TheExampleHasTooFewCoresForThem) {
  std::vector<StageChoice> stages;
  EXPECT_NEAR(OptimalUsd(Example("ctrdnn-16"), stages), 0.0505, 5e-5);
  EXPECT_FALSE(HasNeighbours(stages));
}

// The alternative of one type is the cheapest of all plans on that type.
TEST_F(CutsTest, AlternativesHaveThem) {
  const Registry planners = BuiltinPlanners();
  int cut = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    const model::PlanRequest request = RandomRequest(seed, {.most_layers = 6});
    const auto result = MakePlan(request, {}, planners, clock_, {});
    ASSERT_THAT(result, base::IsOk());
    const Problem problem = Problem::Compile(request).value();
    for (int t = 0; t < problem.types(); ++t) {
      const model::Alternative& one = result->alternatives[static_cast<size_t>(t)];
      std::optional<Provisioned> truth;
      const std::vector<int> schedule(static_cast<size_t>(problem.layers()), t);
      bool profiled = true;
      for (int layer = 0; layer < problem.layers(); ++layer) profiled = profiled && problem.Profiled(layer, t);
      if (profiled) truth = BestOfAllCuts(problem, schedule);
      ASSERT_EQ(one.plan.has_value(), truth.has_value());
      EXPECT_EQ(one.reasons.empty(), truth.has_value());
      if (!truth) continue;
      EXPECT_NEAR(one.plan->cost_usd, truth->score.cost, 1e-9 * truth->score.cost);
      cut += truth->stages.size() > 1 ? 1 : 0;
    }
  }
  EXPECT_GE(cut, 5);
}

}  // namespace
}  // namespace medley::sched
