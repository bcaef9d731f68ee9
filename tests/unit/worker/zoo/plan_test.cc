// The models of examples/zoo as planners see them: work, memory, plans of every planner, simulated steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/base/testing/status_matchers.h"
#include "common/model/plan_result.h"
#include "common/model/planning.h"
#include "scheduler-service/planner/builtin.h"
#include "scheduler-service/planner/plan.h"
#include "scheduler-service/profile/analytic.h"
#include "scheduler-service/profile/work.h"
#include "tests/unit/worker/zoo/zoo_jobs.h"
#include "worker/model/graph.h"

namespace medley::worker::testing {
namespace {

model::Model ModelOf(const std::string& name) { return BuildGraph(ZooJob(name))->ToModel(); }

model::PlanRequest RequestOf(const std::string& name) {
  model::PlanRequest request;
  request.model = ModelOf(name);
  request.training.profile_batch_size = 4096;
  request.training.samples_per_epoch = 1e6;
  request.training.micro_batches = 4;
  for (const auto& [pool, price] : {std::pair("cpu", 0.04), std::pair("cpu-16", 0.6), std::pair("v100", 2.4)}) {
    model::Resource& resource = request.resources.emplace_back();
    resource.name = resource.hardware = pool;
    resource.cls = resource.name == "v100" ? model::ResourceClass::kGpu : model::ResourceClass::kCpu;
    resource.price_per_unit_hour = price;
    resource.limit = 16;
  }
  request.server_type = "cpu";
  request.planner.time_budget_seconds = 20;
  const auto hardware = sched::HardwareCatalog::Builtin();
  EXPECT_THAT(hardware, base::IsOk());
  EXPECT_THAT(sched::AddAnalyticProfiles(request, *hardware), base::IsOk());
  return request;
}

class ZooPlanTest : public ::testing::TestWithParam<std::string> {};

TEST_P(ZooPlanTest, EveryPlannerPlansItAndTheSimulatorTimesIt) {
  const sched::Registry registry = sched::BuiltinPlanners();
  const base::SystemClock clock;
  model::PlanRequest request = RequestOf(GetParam());
  double bound = 0;  // that exact proves for every plan
  for (const char* planner : {"exact", "rl-lstm", "greedy", "heuristic", "cpu-only", "gpu-only"}) {
    request.planner.name = planner;
    const auto result = sched::MakePlan(request, {}, registry, clock, {});
    ASSERT_TRUE(result.ok()) << planner << ": " << base::ToString(result.status());
    ASSERT_TRUE(result->plan.has_value()) << planner;
    ASSERT_TRUE(result->simulated.has_value()) << planner;
    EXPECT_GT(result->simulated->throughput, 0) << planner;
    if (bound == 0) bound = result->lower_bound_usd.value_or(0);
    EXPECT_GT(bound, 0);
    EXPECT_GE(result->plan->cost_usd, bound * (1 - 1e-9)) << planner;
  }
}

TEST_P(ZooPlanTest, ADifferentBoundaryIsPossibleBehindEveryLayer) {
  const model::Model model = ModelOf(GetParam());
  const std::vector<double> cuts = sched::CutBytes(model);
  ASSERT_EQ(cuts.size(), model.layers.size());
  for (size_t i = 0; i + 1 < cuts.size(); ++i) EXPECT_GT(cuts[i], 0) << "behind " << model.layers[i].name;
}

INSTANTIATE_TEST_SUITE_P(Examples, ZooPlanTest, ::testing::ValuesIn(ZooNames()), [](const auto& tested) {
  std::string name = tested.param;
  std::ranges::replace(name, '-', '_');
  return name;
});

std::map<std::string, sched::LayerWork> WorkOfLayers(const std::string& name) {
  std::map<std::string, sched::LayerWork> found;
  for (const model::Layer& layer : ModelOf(name).layers) {
    const auto work = sched::WorkOf(layer);
    EXPECT_TRUE(work.ok()) << base::ToString(work.status());
    if (work.ok()) found[layer.name] = *work;
  }
  return found;
}

TEST(ZooWorkTest, OperationsAreCountedByHand) {
  const auto dlrm = WorkOfLayers("dlrm");
  EXPECT_EQ(dlrm.at("pairs").forward_flops, 2 * 16 * (15 * 14 / 2));  // 15 vectors of 16 numbers
  EXPECT_EQ(dlrm.at("joined").forward_flops, 0) << "it copies";
  EXPECT_EQ(dlrm.at("numbers").forward_flops, 0);
  EXPECT_EQ(dlrm.at("top1").forward_flops, 2 * (121 + 1) * 128);
  const auto deepfm = WorkOfLayers("deepfm");
  EXPECT_EQ(deepfm.at("fm").forward_flops, 3 * 14 * 16 + 2 * 16);
  EXPECT_EQ(deepfm.at("wide_ids").forward_flops, 14);
  EXPECT_EQ(deepfm.at("logit").forward_bytes, 4 * (4 + 1)) << "four numbers in, one out";
  const auto dcn = WorkOfLayers("dcn-v2");
  constexpr double kWidth = 14 * 8 + 6;
  EXPECT_EQ(dcn.at("cross2").forward_flops, 2 * kWidth * kWidth + 3 * kWidth);
  EXPECT_EQ(dcn.at("cross2").parameters, kWidth * (kWidth + 1));
  EXPECT_EQ(dcn.at("cross2").activation_bytes, 4 * 2 * kWidth) << "it keeps its product too";
  const auto nce = WorkOfLayers("nce");
  EXPECT_EQ(nce.at("scores").forward_flops, 2 * 32 * 6);
  EXPECT_EQ(nce.at("target").gathered_rows, 6) << "drawn rows are pulled like others";
  const auto matchnet = WorkOfLayers("matchnet");
  EXPECT_EQ(matchnet.at("match").forward_flops, 2 * 16 * 7 * 7);
  EXPECT_EQ(matchnet.at("cosine").forward_flops, 3 * 2 * 64 + 3);
}

}  // namespace
}  // namespace medley::worker::testing
