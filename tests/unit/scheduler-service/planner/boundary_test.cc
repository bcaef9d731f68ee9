// Boundaries whose costs depend on the types of both sides: the search against all plans, and the edges and paths that
// it works with against every pair of neighbours.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "common/base/testing/status_matchers.h"
#include "common/model/execution_plan.h"
#include "scheduler-service/planner/rest_of_paths.h"
#include "tests/unit/scheduler-service/planner/adversarial_request.h"

namespace medley::sched::boundary_test {
namespace {

constexpr RandomOptions kUnlike = {.most_layers = 6, .boundaries = true, .links = true};

class BoundaryTest : public testing::Test {
 protected:
  Solution Solve(const StagePlanner& planner, const Problem& problem) {
    auto solution = planner.SolveStages(problem, 0, Budget(clock_, base::SteadyTime::max(), {}));
    EXPECT_THAT(solution, base::IsOk());
    return *solution;
  }
  // True if `request`, changed, has an optimum of another cost.
  bool Matters(const model::PlanRequest& request, const Provisioned& best,
               const std::function<void(model::PlanRequest&)>& change) {
    model::PlanRequest other = request;
    change(other);
    const auto optimum = OptimumOf(other);
    return !optimum || std::abs(optimum->score.cost / best.score.cost - 1) > 1e-9;
  }

  base::FakeClock clock_;
};

// True if some stage of the plan would need other units beside some other type.
bool NeighboursMatter(const Problem& of, const Provisioned& plan) {
  const Problem problem = of.ForStages(static_cast<int>(plan.stages.size()));
  for (size_t i = 0; i < plan.stages.size(); ++i) {
    for (const size_t beside : {i - 1, i + 1}) {
      if (beside >= plan.stages.size()) continue;
      for (int t = 0; t < problem.types(); ++t) {
        std::vector<StageChoice> stages = plan.stages;
        stages[beside].type = t;
        if (problem.MinUnits(problem.TermsIn(stages, i), plan.score.throughput, 1'000'000) > stages[i].units) {
          return true;
        }
      }
    }
  }
  return false;
}

TEST_F(BoundaryTest, ExactCostsWhatBruteForceCostsWithUnlikeLinks) {
  int feasible = 0, several = 0, links = 0, groups = 0, neighbours = 0;
  double worst = 0;
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const model::PlanRequest request = AdversarialRequest(seed, kUnlike);
    const auto problem = Problem::Compile(request);
    ASSERT_THAT(problem, base::IsOk());
    const Solution truth = Solve(*MakeBruteForce(), *problem), found = Solve(*MakeExact(), *problem);
    ASSERT_EQ(found.best.has_value(), truth.best.has_value());
    ASSERT_TRUE(found.complete);
    if (!truth.best) continue;
    ++feasible;
    worst = std::max(worst, std::abs(found.best->score.cost / truth.best->score.cost - 1));
    ASSERT_LE(worst, 1e-9);
    ASSERT_EQ(*found.lower_bound, found.best->score.cost) << "the certificate has no gap";
    const Evaluation evaluation = Evaluate(*problem, found.best->stages);
    ASSERT_TRUE(evaluation.violations.empty()) << evaluation.violations[0].message;
    several += found.best->stages.size() > 1 ? 1 : 0;
    neighbours += NeighboursMatter(*problem, *found.best) ? 1 : 0;
    links += Matters(request, *found.best, [](model::PlanRequest& r) { r.links.clear(); }) ? 1 : 0;
    groups += Matters(request, *found.best, [](model::PlanRequest& r) { r.allreduces.clear(); }) ? 1 : 0;
  }
  std::printf(
      "%d feasible, largest relative difference %.1e; %d with several stages, %d whose units depend on the neighbours' "
      "types; links matter in %d, groups in %d\n",
      feasible, worst, several, neighbours, links, groups);
  EXPECT_GE(feasible, 600);
  EXPECT_GE(several, 150);
  EXPECT_GE(neighbours, 50);
  EXPECT_GE(links, 150);
  EXPECT_GE(groups, 50);
}

// The fewest units that the edges of two stages have where they allow each other are those that each needs beside the
// other.
TEST_F(BoundaryTest, EdgesHaveTheUnitsThatEveryPairOfNeighboursNeeds) {
  int compared = 0, narrow = 0;
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    SCOPED_TRACE(seed);
    const model::PlanRequest request =
        RandomRequest(seed, {.most_layers = 3, .most_types = 4, .boundaries = true, .links = true});
    const Problem whole = Problem::Compile(request).value(), problem = whole.ForStages(2);
    const StageGraph graph(problem);
    base::Rng rng(seed);
    const double x = rng.Uniform(100, 4000);
    std::vector<StageEdge> edges;
    std::vector<Beside> besides;
    std::vector<double> slowest;  // by possible stage
    for (const int i : graph.All()) slowest.push_back(graph.AddEdges(i, x, edges, besides));
    for (const StageEdge& edge : edges) narrow += edge.beside >= 0 ? 1 : 0;
    for (const PossibleStage& one : graph.stages()) {
      for (const PossibleStage& two : graph.stages()) {
        if (one.first != 0 || two.first != one.last + 1 || two.last + 1 != problem.layers()) continue;
        const std::vector<StageChoice> stages = {{one.first, one.last, one.type, 0},
                                                 {two.first, two.last, two.type, 0}};
        const int first = problem.MinUnits(problem.TermsIn(stages, 0), x, problem.limit(one.type));
        const int second = problem.MinUnits(problem.TermsIn(stages, 1), x, problem.limit(two.type));
        int least_first = 0, least_second = 0;
        for (const StageEdge& a : edges) {
          if (a.first != one.first || a.last != one.last || a.type != one.type) continue;
          for (const StageEdge& b : edges) {
            if (b.first != two.first || b.last != two.last || b.type != two.type || !Fit(a, b, besides)) continue;
            if (least_first == 0 || a.units < least_first) least_first = a.units;
            if (least_second == 0 || b.units < least_second) least_second = b.units;
            EXPECT_GE(slowest[static_cast<size_t>(a.stage)], x);
            EXPECT_LE(slowest[static_cast<size_t>(a.stage)], problem.Throughput(problem.TermsIn(stages, 0), a.units));
          }
        }
        if (first == 0 || second == 0) {
          EXPECT_EQ(least_first, 0) << "one of both cannot be fast enough";
          continue;
        }
        EXPECT_EQ(least_first, first);
        EXPECT_EQ(least_second, second);
        ++compared;
      }
    }
  }
  EXPECT_GE(compared, 250);
  EXPECT_GE(narrow, 100);
}

struct WeightedEdge : StageEdge {
  double weight = 0;
};

TEST_F(BoundaryTest, RestOfPathsIsTheLeastOfAllPaths) {
  constexpr int kLayers = 4, kTypes = 3;
  int reachable = 0, unreachable = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    base::Rng rng(seed);
    std::vector<WeightedEdge> edges;
    std::vector<Beside> besides;
    for (int first = 0; first < kLayers; ++first) {
      for (int n = 0; n < 5; ++n) {
        WeightedEdge edge;
        edge.first = first;
        edge.last = first + static_cast<int>(rng.Below(static_cast<uint64_t>(kLayers - first)));
        edge.type = static_cast<int>(rng.Below(kTypes));
        edge.weight = rng.Uniform(0, 1);
        Beside beside;
        if (first > 0 && rng.Below(2) == 0) beside.before = rng.Below(8);
        if (edge.last + 1 < kLayers && rng.Below(2) == 0) beside.after = rng.Below(8);
        edge.beside = static_cast<int>(besides.size());
        besides.push_back(beside);
        edges.push_back(edge);
      }
    }
    const std::function<double(const StageEdge*, int)> rest = [&](const StageEdge* from, int layer) {
      double least = layer == kLayers ? 0 : kInfinity;
      for (const WeightedEdge& edge : edges) {
        if (edge.first != layer || (from != nullptr && !Fit(*from, edge, besides))) continue;
        least = std::min(least, edge.weight + rest(&edge, edge.last + 1));
      }
      return least;
    };
    RestOfPaths rests(kLayers, kTypes);
    for (const int again : {1, 2}) {
      SCOPED_TRACE(again);
      rests.Compute(edges, besides);
      EXPECT_EQ(rests.Whole().least, rest(nullptr, 0));
      for (size_t i = 0; i < edges.size(); ++i) {
        const double least = rest(&edges[i], edges[i].last + 1);
        EXPECT_EQ(rests.After(i, edges[i]).least, least);
        ++(least < kInfinity ? reachable : unreachable);
      }
      besides.clear();  // then types do not matter
      for (WeightedEdge& edge : edges) edge.beside = -1;
    }
  }
  EXPECT_GE(reachable, 1000);
  EXPECT_GE(unreachable, 100);
}

}  // namespace
}  // namespace medley::sched::boundary_test
