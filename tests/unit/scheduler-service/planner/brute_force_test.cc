// Compares the planner exact with brute-force, on requests with binding constraints.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <map>

#include "common/base/testing/status_matchers.h"
#include "tests/unit/scheduler-service/planner/adversarial_request.h"

namespace medley::sched::brute_force_test {
namespace {

// The environment variable MEDLEY_INSTANCES=N sets a larger number.
uint64_t Instances() {
  constexpr uint64_t kLeast = 1000;
  const char* wanted = std::getenv("MEDLEY_INSTANCES");
  return wanted == nullptr ? kLeast : std::max<uint64_t>(kLeast, std::strtoul(wanted, nullptr, 10));
}

struct Lifting {
  std::string name;
  std::function<void(model::PlanRequest&)> lift;
};

std::vector<Lifting> Liftings() {
  return {
      {"limits",
       [](auto& r) {
         for (model::Resource& t : r.resources) t.limit = 100'000;
       }},
      {"memory",
       [](auto& r) {
         for (model::Resource& t : r.resources) t.memory_bytes = 0;
       }},
      {"serverMemory", [](auto& r) { r.server_memory_bytes = 0; }},
      {"minThroughput", [](auto& r) { r.constraints.min_throughput = 0; }},
      {"deadline", [](auto& r) { r.constraints.deadline_seconds = 0; }},
      {"maxCostPerHour", [](auto& r) { r.constraints.max_cost_per_hour = 0; }},
      {"budget", [](auto& r) { r.constraints.budget_usd = 0; }},
      {"minUnits", [](auto& r) { r.constraints.min_units = 1; }},
      {"maxUnits", [](auto& r) { r.constraints.max_units = 0; }},
  };
}

class BruteForceTest : public testing::Test {
 protected:
  Solution Solve(const StagePlanner& planner, const Problem& problem) {
    auto solution = planner.SolveStages(problem, 0, Budget(clock_, base::SteadyTime::max(), {}));
    EXPECT_THAT(solution, base::IsOk());
    return *solution;
  }

  // True if the optimum without this constraint is a different one.
  void CountWhatBinds(const model::PlanRequest& request, const std::optional<Provisioned>& best) {
    for (const Lifting& lifting : Liftings()) {
      model::PlanRequest lifted = request;
      lifting.lift(lifted);
      const auto other = OptimumOf(lifted);
      if (other && (!best || other->score.cost < best->score.cost * (1 - 1e-9))) ++binds_[lifting.name];
    }
  }

  void CountStages(const Problem& problem, const Provisioned& best) {
    several_ += best.stages.size() > 1 ? 1 : 0;
    servers_ += best.score.server_units > 0 ? 1 : 0;
    std::vector<int> stages(static_cast<size_t>(problem.types()), 0);
    for (const StageChoice& s : best.stages) ++stages[static_cast<size_t>(s.type)];
    same_type_ += *std::max_element(stages.begin(), stages.end()) > 1 ? 1 : 0;
    bool neighbours = false;
    for (size_t i = 1; i < best.stages.size(); ++i) neighbours |= best.stages[i].type == best.stages[i - 1].type;
    neighbours_ += neighbours ? 1 : 0;
    const std::vector<int> used = UnitsByType(problem, best.stages, best.score.server_units);
    for (int t = 0; t < problem.types(); ++t) {
      const size_t at = static_cast<size_t>(t);
      if (stages[at] > 1 && used[at] == problem.limit(t)) {
        ++coupled_;
        break;
      }
    }
  }

  base::FakeClock clock_;
  std::map<std::string, int> binds_;
  int several_ = 0, servers_ = 0, same_type_ = 0, neighbours_ = 0, coupled_ = 0;
};

TEST_F(BruteForceTest, ExactCostsWhatBruteForceCosts) {
  const uint64_t instances = Instances();
  const double share = 100.0 / static_cast<double>(instances);
  int feasible = 0;
  double worst = 0;
  for (uint64_t seed = 1; seed <= instances; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const model::PlanRequest request =
        AdversarialRequest(seed, {.most_layers = seed % 3 == 0 ? 8 : 6, .boundaries = true});
    const auto problem = Problem::Compile(request);
    ASSERT_THAT(problem, base::IsOk());
    const Solution truth = Solve(*MakeBruteForce(), *problem);
    const Solution found = Solve(*MakeExact(), *problem);
    ASSERT_EQ(found.best.has_value(), truth.best.has_value());
    ASSERT_TRUE(found.complete);
    CountWhatBinds(request, found.best);
    if (!truth.best) continue;
    ++feasible;
    worst = std::max(worst, std::abs(found.best->score.cost / truth.best->score.cost - 1));
    ASSERT_LE(worst, 1e-9);
    ASSERT_EQ(*found.lower_bound, found.best->score.cost) << "the certificate has no gap";
    const Evaluation evaluation = Evaluate(*problem, found.best->stages);
    ASSERT_TRUE(evaluation.violations.empty()) << evaluation.violations[0].message;
    CountStages(*problem, *found.best);
  }
  std::printf("seeds 1..%d: %d feasible, largest relative difference %.1e\n", static_cast<int>(instances), feasible,
              worst);
  std::printf(
      "share with several stages %.1f %%, a type in several stages %.1f %%, in neighbours %.1f %%, whose limit is used "
      "up %.1f %%, servers %.1f %%\n",
      share * several_, share * same_type_, share * neighbours_, share * coupled_, share * servers_);
  for (const auto& [name, count] : binds_) std::printf("binds %s %.1f %%\n", name.c_str(), share * count);
  // Check that the instances cover all cases.
  EXPECT_GE(share * feasible, 60);
  EXPECT_GE(share * several_, 20);
  EXPECT_GE(share * same_type_, 5);
  EXPECT_GE(share * neighbours_, 5);
  EXPECT_GE(share * coupled_, 1.5);
  EXPECT_GE(share * servers_, 10);
  for (const Lifting& lifting : Liftings()) EXPECT_GE(share * binds_[lifting.name], 1) << lifting.name;
}

}  // namespace
}  // namespace medley::sched::brute_force_test
