// Tests the cost model with numbers computed by hand.
//
// Three layers, B = 64 samples, 1,000,000 samples, types cpu (0.1 USD/h, limit 100) and gpu (2
// USD/h, limit 10):
//   layer  type  c      alpha  y      x      beta  v      w
//   emb    cpu   0.010  0.9    0.004  0.002  0.5   0.003  8e6
//   emb    gpu   0.020  0.9    0.010  0.002  0.5   0      8e6
//   fc     cpu   0.100  1.0    0.001  0.004  1.0   0      1e6
//   fc     gpu   0.004  0.5    0.002  0.004  1.0   0      1e6
//   loss   cpu   0.002  0      0      0.008  0     0      0
//   loss   gpu   0.001  0      0      0.008  0     0      0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "common/base/testing/status_matchers.h"
#include "scheduler-service/cost/evaluate.h"
#include "scheduler-service/provision/exact.h"

namespace medley::sched {
namespace {

constexpr double kExact = 1e-12;

model::Layer MakeLayer(const std::string& name, double weight, std::vector<model::LayerProfile> profiles) {
  model::Layer layer;
  layer.name = name;
  layer.weight_bytes = weight;
  layer.profiles = std::move(profiles);
  return layer;
}

model::PlanRequest HandMade() {
  model::PlanRequest r;
  r.model.layers = {
      MakeLayer("emb", 8e6, {{"cpu", 0.010, 0.9, 0.004, 0.002, 0.5, 0.003}, {"gpu", 0.020, 0.9, 0.010, 0.002, 0.5, 0}}),
      MakeLayer("fc", 1e6, {{"cpu", 0.100, 1.0, 0.001, 0.004, 1.0, 0}, {"gpu", 0.004, 0.5, 0.002, 0.004, 1.0, 0}}),
      MakeLayer("loss", 0, {{"cpu", 0.002, 0, 0, 0.008, 0, 0}, {"gpu", 0.001, 0, 0, 0.008, 0, 0}})};
  r.training.profile_batch_size = 64;
  r.training.samples_per_epoch = 1e6;
  r.resources = {{"cpu", model::ResourceClass::kCpu, 0.1, 100}, {"gpu", model::ResourceClass::kGpu, 2, 10}};
  r.server_type = "cpu";
  return r;
}

Problem Compiled(const model::PlanRequest& request) {
  auto problem = Problem::Compile(request);
  EXPECT_THAT(problem, base::IsOk());
  return *std::move(problem);
}

std::vector<std::string> Names(const std::vector<model::Reason>& reasons) {
  std::vector<std::string> names;
  for (const model::Reason& reason : reasons) names.push_back(reason.constraint);
  return names;
}

// emb on 2 cpu | fc, loss on 1 gpu.
const std::vector<StageChoice> kMixed = {{0, 0, 0, 2}, {1, 2, 1, 1}};

TEST(CostTest, StageTimesByHand) {
  const Problem problem = Compiled(HandMade());
  // emb on cpu, k = 2: CT = 0.1*0.010 + 0.9*0.010/2 = 0.001 + 0.0045 = 0.0055
  //                    DT = 0.5*(0.004+0.002) + 0.5*(0.004+0.002)/2 = 0.003 + 0.0015 = 0.0045
  const StageTerms emb = problem.Terms(0, 0, 0);
  EXPECT_NEAR(emb.ComputeSeconds(2), 0.0055, kExact);
  EXPECT_NEAR(emb.CommSeconds(2), 0.0045, kExact);
  EXPECT_NEAR(problem.Throughput(emb, 2), 64 / 0.0055, 1e-6);
  // fc, loss on gpu, k = 1: CT = 0.004 + 0.001 = 0.005; DT = 0.002, the last layer of the model
  // sends nothing.
  const StageTerms rest = problem.Terms(1, 2, 1);
  EXPECT_NEAR(rest.ComputeSeconds(1), 0.005, kExact);
  EXPECT_NEAR(rest.CommSeconds(1), 0.002, kExact);
  // k = 4: CT = 0.5*0.004 + 0.001 + 0.002/4 = 0.0035; DT = 0.002/4 = 0.0005.
  EXPECT_NEAR(rest.ComputeSeconds(4), 0.0035, kExact);
  EXPECT_NEAR(rest.CommSeconds(4), 0.0005, kExact);
  // emb, fc on gpu, k = 1: only the last layer of the stage sends: DT = 0.010 + 0.002 + 0.004 =
  // 0.016.
  EXPECT_NEAR(problem.Terms(0, 1, 1).CommSeconds(1), 0.016, kExact);
}

TEST(CostTest, PlanByHand) {
  // X = min(64/0.0055, 64/0.005) = 11636.3636...; servers = ceil(X * 0.003 / 64) = ceil(0.5454)
  // = 1. USD/h = 2*0.1 + 1*2 + 1*0.1 = 2.3; seconds = 1e6 / 11636.3636 = 85.9375; cost
  // = 85.9375/3600*2.3.
  const Evaluation e = Evaluate(Compiled(HandMade()), kMixed);
  EXPECT_NEAR(e.plan.throughput, 64 / 0.0055, 1e-6);
  EXPECT_EQ(e.plan.server_units, 1);
  EXPECT_NEAR(e.plan.cost_per_hour, 2.3, kExact);
  EXPECT_NEAR(e.plan.execution_seconds, 85.9375, 1e-9);
  EXPECT_NEAR(e.plan.cost_usd, 85.9375 / 3600 * 2.3, kExact);
  EXPECT_TRUE(e.violations.empty());
}

TEST(CostTest, ServerMemoryBoundsServers) {
  model::PlanRequest r = HandMade();
  r.server_memory_bytes = 5e6;  // 3 * 8e6 / 5e6 = 4.8 -> 5
  EXPECT_EQ(Evaluate(Compiled(r), kMixed).plan.server_units, 5);
  r.server_memory_bytes = 6e6;  // exactly 4
  EXPECT_EQ(Evaluate(Compiled(r), kMixed).plan.server_units, 4);
  // On gpu the embedding has v = 0: no servers at all.
  EXPECT_EQ(Evaluate(Compiled(r), {{0, 2, 1, 1}}).plan.server_units, 0);
}

// 1 ms of c = 5 ms is the processor's part of a sum between two units. One unit does not add, four move 1.5 times as
// much.
TEST(CostTest, OneUnitTakesNoTimeForSums) {
  model::PlanRequest r = HandMade();
  for (model::Layer& layer : r.model.layers) {
    for (model::LayerProfile& p : layer.profiles) {
      p.compute_seconds = 0.005;
      p.compute_parallel = 0.8;
      if (!layer.sparse && p.server_seconds == 0) p.sync_processor_seconds = 0.001;
    }
  }
  const Problem problem = Compiled(r);
  ASSERT_FALSE(r.model.layers[1].sparse);
  const StageTerms terms = problem.ComputeTerms(1, 1);
  EXPECT_NEAR(terms.ComputeSeconds(1), 0.004, kExact);
  EXPECT_NEAR(terms.ComputeSeconds(2), 0.001 + 0.002, kExact);
  EXPECT_NEAR(terms.ComputeSeconds(4), 0.001 + 0.001 + 0.0005, kExact);
  r.model.layers[1].profiles[1].sync_processor_seconds = 0.003;  // sums cost more than a second unit saves
  const StageTerms constant = Compiled(r).ComputeTerms(1, 1);
  EXPECT_NEAR(constant.ComputeSeconds(1), 0.002, kExact);
  EXPECT_NEAR(constant.ComputeSeconds(4), 0.002, kExact);
}

// The servers need 0.5454 cores.
TEST(CostTest, ServersAreCountedInUnitsOfTheirCores) {
  model::PlanRequest r = HandMade();
  r.resources[0].cores = 0.2;
  EXPECT_EQ(Evaluate(Compiled(r), kMixed).plan.server_units, 3);
  r.resources[0].cores = 0.5;
  EXPECT_EQ(Evaluate(Compiled(r), kMixed).plan.server_units, 2);
  r.resources[0].cores = 4;
  EXPECT_EQ(Evaluate(Compiled(r), kMixed).plan.server_units, 1);
  r.resources[1].cores = 0.01;
  EXPECT_EQ(Evaluate(Compiled(r), kMixed).plan.server_units, 1) << "the other type does not serve";
}

TEST(CostTest, MinThroughputHasATolerance) {
  model::PlanRequest r = HandMade();
  r.constraints.min_throughput = 64 / 0.0055 * (1 + 5e-10);
  EXPECT_TRUE(Evaluate(Compiled(r), kMixed).violations.empty());
  r.constraints.min_throughput = 64 / 0.0055 * (1 + 5e-9);
  EXPECT_EQ(Names(Evaluate(Compiled(r), kMixed).violations), std::vector<std::string>{"minThroughput"});
}

TEST(CostTest, LimitCountsWorkersAndServers) {
  model::PlanRequest r = HandMade();
  r.resources[0].limit = 3;  // 2 workers + 1 server
  EXPECT_TRUE(Evaluate(Compiled(r), kMixed).violations.empty());
  r.resources[0].limit = 2;
  const auto violations = Evaluate(Compiled(r), kMixed).violations;
  ASSERT_EQ(Names(violations), std::vector<std::string>{"limit"});
  EXPECT_EQ(violations[0].resource_type, "cpu");
  EXPECT_EQ(violations[0].needed, 3);
  EXPECT_EQ(violations[0].available, 2);
}

TEST(CostTest, EveryOtherConstraint) {
  const auto violated = [](auto change) {
    model::PlanRequest r = HandMade();
    change(r);
    return Names(Evaluate(Compiled(r), kMixed).violations);
  };
  using V = std::vector<std::string>;
  EXPECT_EQ(violated([](auto& r) { r.constraints.max_cost_per_hour = 2.29; }), V{"maxCostPerHour"});
  EXPECT_EQ(violated([](auto& r) { r.constraints.max_cost_per_hour = 2.3; }), V{});
  EXPECT_EQ(violated([](auto& r) { r.constraints.deadline_seconds = 85; }), V{"deadline"});
  EXPECT_EQ(violated([](auto& r) { r.constraints.deadline_seconds = 86; }), V{});
  EXPECT_EQ(violated([](auto& r) { r.constraints.budget_usd = 0.05; }), V{"budget"});
  EXPECT_EQ(violated([](auto& r) { r.constraints.max_units = 2; }), V{"maxUnits"});
  EXPECT_EQ(violated([](auto& r) { r.constraints.max_units = 3; }), V{});  // servers do not count as trainers
  EXPECT_EQ(violated([](auto& r) { r.constraints.min_units = 2; }), V{"minUnits"});
  // A unit of gpu holds 3 * 1e6 bytes; the servers hold the embedding's parameters.
  EXPECT_EQ(violated([](auto& r) { r.resources[1].memory_bytes = 2.9e6; }), V{"memory"});
  EXPECT_EQ(violated([](auto& r) {
              r.resources[1].memory_bytes = 3e6;
              r.resources[0].memory_bytes = 1;
            }),
            V{});
}

TEST(CostTest, RemainingSamplesReplaceEpochs) {
  model::PlanRequest r = HandMade();
  r.training.remaining_samples = 5e5;
  EXPECT_NEAR(Evaluate(Compiled(r), kMixed).plan.execution_seconds, 85.9375 / 2, 1e-9);
}

TEST(CostTest, CompileErrorsNameThePath) {
  const auto refused = [](auto change) {
    model::PlanRequest r = HandMade();
    change(r);
    return base::Message(Problem::Compile(r).status());
  };
  using testing::HasSubstr;
  EXPECT_THAT(refused([](auto& r) { r.model.layers[1].profiles[0].compute_parallel = 1.5; }),
              HasSubstr("model.layers[1].profiles[0].computeParallel: must be in [0, 1]"));
  EXPECT_THAT(refused([](auto& r) { r.server_type = ""; }), HasSubstr("serverType"));
  EXPECT_THAT(refused([](auto& r) { r.resources[1].price_per_unit_hour = 0; }), HasSubstr("'gpu' has no price"));
  EXPECT_THAT(refused([](auto& r) { r.training.profile_batch_size = 0; }), HasSubstr("training.profileBatchSize"));
  EXPECT_THAT(refused([](auto& r) { r.resources[1].name = "cpu"; }),
              HasSubstr("resources[1].name: 'cpu' appears twice"));
}

TEST(MinUnitsTest, IsTheSmallestForEveryThroughput) {
  model::PlanRequest r = HandMade();
  r.constraints.min_units = 2;
  const Problem problem = Compiled(r);
  for (int type = 0; type < 2; ++type) {
    const StageTerms terms = problem.Terms(0, 1, type);
    for (double x = 100; x < 1e5; x *= 1.013) {
      int smallest = 0;
      for (int k = 2; k <= 60 && smallest == 0; ++k) smallest = problem.Throughput(terms, k) >= x ? k : 0;
      ASSERT_EQ(problem.MinUnits(terms, x, 60), smallest) << x;
    }
    for (int k = 2; k <= 60; ++k) EXPECT_EQ(problem.MinUnits(terms, problem.Throughput(terms, k), 60), k);
  }
}

// Compares with every vector of units, for two and three stages.
TEST(ProvisionTest, IsTheOptimumOverAllUnits) {
  int feasible = 0;
  for (int variant = 0; variant < 64; ++variant) {
    SCOPED_TRACE(variant);
    model::PlanRequest r = HandMade();
    r.resources[0].limit = 4 + variant % 9;
    r.resources[1].limit = 1 + variant % 5;
    r.constraints.min_throughput = 600.0 * (variant % 13);
    r.constraints.max_units = variant % 3 == 0 ? 9 : 0;
    r.constraints.max_cost_per_hour = variant % 4 == 0 ? 3.5 : 0;
    const Problem problem = Compiled(r);
    std::vector<StageChoice> stages =
        variant % 2 == 0 ? kMixed : std::vector<StageChoice>{{0, 0, 0, 0}, {1, 1, 1, 0}, {2, 2, 0, 0}};
    double best = std::numeric_limits<double>::infinity();
    const int third = stages.size() == 3 ? 13 : 1;
    for (int a = 1; a <= 13; ++a) {
      for (int b = 1; b <= 6; ++b) {
        for (int c = 1; c <= third; ++c) {
          stages[0].units = a;
          stages[1].units = b;
          if (stages.size() == 3) stages[2].units = c;
          const Evaluation e = Evaluate(problem, stages);
          if (e.violations.empty()) best = std::min(best, e.plan.cost_usd);
        }
      }
    }
    const auto found = ProvisionExact(problem, stages);
    ASSERT_EQ(found.has_value(), std::isfinite(best));
    if (!found) {
      EXPECT_FALSE(WhyNotProvisioned(problem, stages).empty());
      continue;
    }
    ++feasible;
    EXPECT_NEAR(found->score.cost, best, 1e-12 * best);
  }
  EXPECT_GE(feasible, 20);
}

}  // namespace
}  // namespace medley::sched
