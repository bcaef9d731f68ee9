// Plans whose embedding tables are on a GPU: whole, as a cache, or not there, by what was measured and what fits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "common/base/testing/status_matchers.h"
#include "scheduler-service/planner/builtin.h"
#include "scheduler-service/planner/pareto.h"
#include "scheduler-service/planner/plan.h"
#include "scheduler-service/planner/rows_place.h"
#include "tests/unit/scheduler-service/planner/adversarial_request.h"

namespace medley::sched {
namespace {

using model::RowsPlace;
using model::TablePlace;
using testing::HasSubstr;

constexpr double kGib = 1 << 30;
constexpr double kTable = 8 * kGib;

// A table and a dense layer, on processors and on a GPU. A step on the GPU takes 0.004 s with the table there, 0.010 s
// more if all of its rows are missed, and 0.012 s with rows of servers, which take 0.006 s of a processor.
model::PlanRequest CpuAndGpu() {
  model::PlanRequest r;
  model::Layer table, dense;
  table.name = "emb";
  table.sparse = true;
  table.weight_bytes = kTable;
  table.profiles = {{"cpu", 0.100, 1, 0.002, 0, 1, 0.006}, {"gpu", 0.010, 1, 0.002, 0, 1, 0.006}};
  table.profiles[1].tables = model::TablesOnDevice{0.002, 0.010, {{0.01, 0.3}, {0.1, 0.6}, {0.5, 0.9}}};
  dense.name = "fc";
  dense.weight_bytes = 1e5;
  dense.profiles = {{"cpu", 0.200, 1, 0.001, 0, 1, 0}, {"gpu", 0.002, 1, 0.001, 0, 1, 0}};
  r.model.layers = {table, dense};
  r.training.profile_batch_size = 64;
  r.training.samples_per_epoch = 1e6;
  r.training.state_factor = 3;
  r.resources = {{"cpu", model::ResourceClass::kCpu, 0.1, 100}, {"gpu", model::ResourceClass::kGpu, 1, 8}};
  r.server_type = "cpu";
  r.rows = RowsPlace::kAny;
  return r;
}

class TablesOnDeviceTest : public testing::Test {
 protected:
  model::PlanResult Plan(const model::PlanRequest& request) {
    auto result = MakePlan(request, {}, planners_, clock_, {});
    EXPECT_THAT(result, base::IsOk());
    return result.ok() ? *std::move(result) : model::PlanResult();
  }
  // The cost of the cheapest plan with the rows in one place, by trying all of them.
  std::optional<double> CheapestBy(model::PlanRequest request, RowsPlace place) {
    request.rows = place;
    const auto problem = Problem::Compile(request);
    EXPECT_THAT(problem, base::IsOk());
    const auto found = MakeBruteForce()->SolveStages(*problem, 0, Budget(clock_, base::SteadyTime::max(), {}));
    EXPECT_THAT(found, base::IsOk());
    return found->best ? std::optional(found->best->score.cost) : std::nullopt;
  }

  const Registry planners_ = BuiltinPlanners();
  base::FakeClock clock_;
};

// With two floats of state and weights for each, the table takes 16 GiB; a quarter more is left free.
TEST_F(TablesOnDeviceTest, AWholeTableIsOnTheGpuWhereItFits) {
  model::PlanRequest request = CpuAndGpu();
  request.resources[1].device_memory_bytes = 20.1 * kGib;
  const model::PlanResult result = Plan(request);
  ASSERT_TRUE(result.plan);
  ASSERT_EQ(result.plan->stages.size(), 1U);
  EXPECT_EQ(result.plan->stages[0].tables, (model::Tables{TablePlace::kDevice}));
  EXPECT_EQ(result.plan->server_units, 0) << "nobody would pull rows";
  EXPECT_EQ(result.plan->trainers_with_rows, 0);
  EXPECT_NEAR(result.plan->throughput, 64 / 0.004, 1e-6);
  EXPECT_NEAR(result.plan->cost_usd, 1e6 / (64 / 0.004) / 3600, 1e-9);
  ASSERT_TRUE(result.gap);
  EXPECT_NEAR(*result.gap, 0, 1e-9);
  const model::ExecutionPlan& plan = *result.execution_plan;
  EXPECT_EQ(plan.servers, std::nullopt);
  EXPECT_THAT(Validate(plan, 2), base::IsOk());
  EXPECT_EQ(Summary(plan, {"emb", "fc"}), "emb..fc@1xgpu with tables on its GPU");
  ASSERT_FALSE(result.notes.empty());
  EXPECT_THAT(result.notes.back(), HasSubstr("the GPU of one trainer has the embedding rows: with rows in the memory "
                                             "of hosts the best plan costs"));
}

// 15 GiB are left beside the dense layer: half of them has 7.5 of 16 GiB of rows, of which a step finds 88 %.
TEST_F(TablesOnDeviceTest, ACacheIsUsedWhereTheTableDoesNotFit) {
  model::PlanRequest request = CpuAndGpu();
  request.resources[1].device_memory_bytes = 15 * kGib + 3e5;
  const model::PlanResult result = Plan(request);
  ASSERT_TRUE(result.plan);
  const model::Tables tables = result.plan->stages[0].tables;
  EXPECT_EQ(tables.place, TablePlace::kCache);
  EXPECT_NEAR(static_cast<double>(tables.cache_bytes), 7.5 * kGib, 10);
  const double hits = 0.6 + 0.3 * (7.5 / 16 - 0.1) / 0.4;
  EXPECT_NEAR(tables.hits, hits, 1e-9);
  EXPECT_NEAR(result.plan->throughput, 64 / (0.004 + 0.010 * (1 - hits)), 1e-6);
  EXPECT_EQ(result.execution_plan->stages[0].tables, tables);
  EXPECT_EQ(Summary(*result.execution_plan, {"emb", "fc"}), "emb..fc@1xgpu with rows cached on its GPU");
}

// Each miss would cost more than copying the rows of a step.
TEST_F(TablesOnDeviceTest, RowsStayOnHostsWhereACacheIsSlower) {
  model::PlanRequest request = CpuAndGpu();
  request.resources[1].device_memory_bytes = 15 * kGib;
  request.model.layers[0].profiles[1].tables->missed_seconds = 1;
  const model::PlanResult result = Plan(request);
  ASSERT_TRUE(result.plan);
  EXPECT_EQ(result.plan->stages[0].tables, (model::Tables{TablePlace::kHost}));
  EXPECT_NE(result.plan->server_units + result.plan->trainers_with_rows, 0);
  EXPECT_EQ(result.execution_plan->stages[0].tables.place, TablePlace::kHost);
}

TEST_F(TablesOnDeviceTest, RowsStayOnHostsWhereNotEvenACacheFits) {
  model::PlanRequest request = CpuAndGpu();
  request.resources[1].device_memory_bytes = 0.3 * kGib;  // a hundredth of the table needs more
  const model::PlanResult result = Plan(request);
  ASSERT_TRUE(result.plan);
  EXPECT_EQ(result.plan->stages[0].tables.place, TablePlace::kHost);
}

// One GPU reaches 16,000 samples/s, and twice as many with the dense layer on others. A higher goal needs several units
// with the table, and so servers.
TEST_F(TablesOnDeviceTest, AFasterPlanHasSeveralUnitsAndNoTablesThere) {
  model::PlanRequest request = CpuAndGpu();
  request.resources[1].device_memory_bytes = 80 * kGib;
  request.constraints.min_throughput = 64 / 0.004 * 1.01;
  const model::PlanResult two = Plan(request);
  ASSERT_TRUE(two.plan);
  ASSERT_EQ(two.plan->stages.size(), 2U);
  EXPECT_EQ(two.plan->stages[0].tables.place, TablePlace::kDevice);
  EXPECT_EQ(two.plan->stages[0].units, 1);
  request.constraints.min_throughput = 64 / 0.002 * 1.01;
  const model::PlanResult several = Plan(request);
  ASSERT_TRUE(several.plan);
  EXPECT_FALSE(several.plan->stages[0].tables.OnDevice());
  EXPECT_GE(several.plan->throughput, request.constraints.min_throughput * (1 - 1e-9));
}

TEST_F(TablesOnDeviceTest, WhoAsksForSeveralUnitsGetsNoTablesOnAGpu) {
  model::PlanRequest request = CpuAndGpu();
  request.resources[1].device_memory_bytes = 80 * kGib;
  request.constraints.min_units = 2;
  EXPECT_FALSE(MayUseDevices(request));
  EXPECT_FALSE(Plan(request).plan->stages[0].tables.OnDevice());
  request.rows = RowsPlace::kDevice;
  EXPECT_FALSE(Plan(request).plan);
}

// Without a measurement, or a GPU whose memory is known, answers are what they were.
TEST_F(TablesOnDeviceTest, NothingChangesWhereNothingIsKnownOfAGpu) {
  model::PlanRequest known = CpuAndGpu();
  known.resources[1].device_memory_bytes = 80 * kGib;
  EXPECT_TRUE(MayUseDevices(known));
  model::PlanRequest unmeasured = known;
  unmeasured.model.layers[0].profiles[1].tables.reset();
  EXPECT_FALSE(MayUseDevices(unmeasured));
  model::PlanRequest no_memory = known;
  no_memory.resources[1].device_memory_bytes = 0;
  EXPECT_FALSE(MayUseDevices(no_memory));
  const model::PlanResult a = Plan(unmeasured), b = Plan(no_memory);
  EXPECT_EQ(a.execution_plan, b.execution_plan);
  EXPECT_EQ(a.plan->stages[0].tables, model::Tables());
  EXPECT_EQ(known.rows, RowsPlace::kAny);
  known.rows = RowsPlace::kServers;
  EXPECT_FALSE(MayUseDevices(known)) << "the job names a pool of servers";
}

// The pipeline divides: the GPU has the table and the rest is on processors, or the reverse, as it is cheaper. The
// simulator sees the times of the table there.
TEST_F(TablesOnDeviceTest, TheSimulatorSeesTheTableOnTheGpu) {
  model::PlanRequest request = CpuAndGpu();
  request.resources[1].device_memory_bytes = 80 * kGib;
  request.training.micro_batches = 1;
  request.simulate = true;
  const model::PlanResult result = Plan(request);
  ASSERT_TRUE(result.simulated);
  EXPECT_EQ(result.plan->stages[0].tables.place, TablePlace::kDevice);
  EXPECT_NEAR(result.simulated->throughput, 64 / 0.004, 64 / 0.004 * 0.01);
}

TEST_F(TablesOnDeviceTest, TheParetoFrontHasThesePlans) {
  model::PlanRequest request = CpuAndGpu();
  request.resources[1].device_memory_bytes = 80 * kGib;
  const auto front = MakePareto(request, {}, 50, clock_, {});
  ASSERT_THAT(front, base::IsOk());
  const auto there = [](const model::ProvisionedPlan& plan) { return plan.stages[0].tables.OnDevice(); };
  EXPECT_EQ(std::ranges::count_if(front->plans, there), 1);
  EXPECT_GT(front->plans.back().throughput, 64 / 0.004) << "faster ones have several units";
}

// Tables that were measured on some types, whose memory has room for whole tables, for a cache or for nothing.
void AddMeasurements(uint64_t seed, model::PlanRequest& request) {
  base::Rng rng(seed);
  double tables = 0;
  for (model::Layer& layer : request.model.layers) {
    for (model::LayerProfile& p : layer.profiles) {
      if (p.server_seconds <= 0 || rng.Below(5) == 0) continue;
      tables = std::max(tables, layer.weight_bytes);
      p.tables = model::TablesOnDevice{p.compute_seconds * rng.Uniform(0.2, 1.2),
                                       p.compute_seconds * rng.Uniform(0, 3),
                                       {{0.1, rng.Uniform(0, 0.5)}, {0.5, rng.Uniform(0.5, 1)}}};
    }
  }
  for (model::Resource& resource : request.resources) {
    resource.device_memory_bytes = rng.Below(3) == 0 ? 0 : tables * rng.Uniform(0.02, 8) + 1;
  }
}

TEST_F(TablesOnDeviceTest, ExactCostsWhatBruteForceCostsWithAllChoices) {
  int feasible = 0, whole = 0, cached = 0, hosts = 0;
  double worst = 0;
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    model::PlanRequest request = AdversarialRequest(seed, {.most_layers = 5, .boundaries = true});
    AddMeasurements(seed, request);
    request.rows = RowsPlace::kAny;
    request.planner.evaluator = model::EvaluatorKind::kCostModel;
    double truth = kInfinity;
    for (const RowsPlace place : {RowsPlace::kServers, RowsPlace::kTrainers, RowsPlace::kDevice}) {
      if (place == RowsPlace::kDevice && !MayUseDevices(request)) continue;
      truth = std::min(truth, CheapestBy(request, place).value_or(kInfinity));
    }
    const model::PlanResult result = Plan(request);
    ASSERT_EQ(result.plan.has_value(), truth < kInfinity);
    if (!result.plan) continue;
    ++feasible;
    worst = std::max(worst, std::abs(result.plan->cost_usd / truth - 1));
    ASSERT_LE(worst, 1e-9);
    ASSERT_TRUE(result.lower_bound_usd);
    ASSERT_NEAR(*result.lower_bound_usd, truth, truth * 1e-9);
    ASSERT_THAT(Validate(*result.execution_plan, static_cast<int>(request.model.layers.size())), base::IsOk());
    bool device = false, cache = false;
    for (const model::Stage& stage : result.execution_plan->stages) {
      device = device || stage.tables.place == TablePlace::kDevice;
      cache = cache || stage.tables.place == TablePlace::kCache;
    }
    whole += device ? 1 : 0;
    cached += cache ? 1 : 0;
    hosts += device || cache ? 0 : 1;
  }
  std::printf(
      "500 instances: %d feasible, %d with whole tables on a GPU, %d with a cache, %d with neither, largest "
      "difference %.1e\n",
      feasible, whole, cached, hosts, worst);
  EXPECT_GE(feasible, 250);
  EXPECT_GE(whole, 20);
  EXPECT_GE(cached, 5);
  EXPECT_GE(hosts, 20);
}

}  // namespace
}  // namespace medley::sched
