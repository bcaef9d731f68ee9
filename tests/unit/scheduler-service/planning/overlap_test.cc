// Reductions during the next step: what they gain, and their order against all orders.
#include "scheduler-service/planning/overlap.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "common/base/testing/status_matchers.h"
#include "scheduler-service/devices/plans.h"
#include "scheduler-service/simulate/reduction_order.h"
#include "tests/unit/scheduler-service/devices/random_cluster.h"
#include "tests/unit/scheduler-service/planning/judge_of.h"

namespace medley::sched {
namespace {

using base::IsOk;

class OverlapTest : public testing::Test {
 protected:
  static Budget Unlimited() { return {Clock(), base::SteadyTime::max(), std::stop_token()}; }
  static const base::Clock& Clock() {
    static const base::SystemClock clock;
    return clock;
  }
  // Two equal devices that have the whole model; `rate`: bytes a second of their link.
  static DeviceProblem TwoDevices(int layers, double weight_bytes, double rate) {
    model::PlanRequest request = ClusterRequest({2}, {1}, layers, 1, weight_bytes);
    request.cluster.links = {{"*", "*", 1e-6, rate}};
    return *DeviceProblem::Compile(request);
  }
  static model::ExecutionPlan Copies(const DeviceProblem& problem, int64_t bucket_bytes) {
    model::ExecutionPlan plan =
        BuildDataParallel(problem, {{0, 1}, {0.5, 0.5}, {}, {model::AllreduceAlgorithm::kRing}});
    plan.schedule.bucket_bytes = bucket_bytes;
    return plan;
  }
};

// Each device computes for half a second. The reductions take 0.4 s: behind the backward pass alone they cannot hide.
TEST_F(OverlapTest, ReductionsHideBehindBothPasses) {
  const DeviceProblem problem = TwoDevices(16, 4e8, 1e9);
  DeviceSimulator evaluator(problem, std::stop_token());
  const Budget unlimited = Unlimited();
  const JudgeOf judge(problem);
  Overlapping overlapping(*judge, unlimited);
  double at_end = kForever;
  for (const int64_t bytes : BucketSizes(problem)) {
    const auto seconds = evaluator.Seconds(Copies(problem, bytes));
    ASSERT_THAT(seconds, IsOk());
    at_end = std::min(at_end, *seconds);
  }
  EXPECT_GT(at_end, 0.57);
  const auto overlapped = overlapping.NextStep(Copies(problem, 0), at_end);
  ASSERT_THAT(overlapped, IsOk());
  ASSERT_TRUE(*overlapped);
  EXPECT_TRUE((*overlapped)->plan.schedule.overlap_next_step);
  EXPECT_LT((*overlapped)->figures.seconds,
            0.5 + 2 * 0.025);  // the first layer's gradient is complete last, and used first
  EXPECT_GE((*overlapped)->figures.seconds, 0.5);
  EXPECT_THAT(model::Validate((*overlapped)->plan, 16), IsOk());
  EXPECT_THAT(*overlapping.NextStep(Copies(problem, 0), 0.49), testing::Eq(std::nullopt));
}

TEST_F(OverlapTest, NothingIsTriedWhenTheTimeIsOver) {
  const DeviceProblem problem = TwoDevices(16, 4e8, 1e9);
  const Budget spent(Clock(), Clock().Steady(), std::stop_token());
  const JudgeOf judge(problem);
  Overlapping overlapping(*judge, spent);
  const auto overlapped = overlapping.NextStep(Copies(problem, 0), kForever);
  ASSERT_THAT(overlapped, IsOk());
  EXPECT_FALSE(*overlapped);
  EXPECT_EQ(overlapping.calls(), 0);
}

TEST_F(OverlapTest, NothingIsGainedWhereReductionsAreShort) {
  const DeviceProblem problem = TwoDevices(16, 4e6, 1e10);
  DeviceSimulator evaluator(problem, std::stop_token());
  const auto at_end = evaluator.Seconds(Copies(problem, 0));
  ASSERT_THAT(at_end, IsOk());
  const Budget unlimited = Unlimited();
  const JudgeOf judge(problem);
  const auto overlapped = Overlapping(*judge, unlimited).NextStep(Copies(problem, 0), *at_end * kWorthOverlap);
  ASSERT_THAT(overlapped, IsOk());
  EXPECT_FALSE(*overlapped);
}

TEST_F(OverlapTest, NotWhereTheRuntimeRefusesIt) {
  const auto none = [](auto change) {
    model::PlanRequest request = ClusterRequest({2}, {1}, 4, 1, 4e8);
    change(request);
    const auto problem = DeviceProblem::Compile(request);
    ASSERT_THAT(problem, IsOk());
    const Budget unlimited = Unlimited();
    const JudgeOf judge(*problem);
    const auto overlapped = Overlapping(*judge, unlimited).NextStep(Copies(*problem, 0), kForever);
    ASSERT_THAT(overlapped, IsOk());
    EXPECT_FALSE(*overlapped);
  };
  none([](model::PlanRequest& r) { r.planner.schedule = model::ScheduleKind::kAsync1F1B; });
  none([](model::PlanRequest& r) { r.planner.sync.mode = model::SyncMode::kNone; });
  none([](model::PlanRequest& r) { r.model.clips_gradients = true; });
}

// Layers of random size, each a bucket of its own. A reduction is not interrupted, so first use is not always best.
TEST_F(OverlapTest, OrderByFirstUseAgainstAllOrders) {
  constexpr int kLayers = 5, kInstances = 40;
  base::Rng rng(1);
  std::vector<double> ratios, orders;
  for (int i = 0; i < kInstances; ++i) {
    model::PlanRequest request = ClusterRequest({2}, {1}, kLayers, 1, 4e8);
    request.cluster.links = {{"*", "*", 1e-6, LogUniform(rng, 3e8, 3e9)}};
    for (model::Layer& layer : request.model.layers) layer.weight_bytes *= LogUniform(rng, 0.1, 3);
    const DeviceProblem problem = *DeviceProblem::Compile(request);
    DeviceSimulator evaluator(problem, std::stop_token());
    model::ExecutionPlan plan = Copies(problem, 1);
    plan.schedule.overlap_next_step = true;
    const auto simulated = evaluator.Timeline(plan);
    ASSERT_THAT(simulated, IsOk());
    const std::vector<model::OrderEntry> by_first_use = ReductionsByFirstUse(*simulated);
    std::vector<int> operations;
    for (const model::OrderEntry& entry : by_first_use) operations.push_back(entry.operation);
    std::ranges::sort(operations);
    const auto seconds = [&](const std::vector<int>& order) {
      plan.order.clear();
      for (const int operation : order) plan.order.push_back({operation, model::Phase::kReduce});
      return evaluator.Seconds(plan).value_or(kForever);
    };
    double best = kForever, worst = 0;
    do {
      const double one = seconds(operations);
      best = std::min(best, one);
      worst = std::max(worst, one);
    } while (std::ranges::next_permutation(operations).found);
    plan.order = by_first_use;
    ratios.push_back(evaluator.Seconds(plan).value_or(kForever) / best);
    orders.push_back(worst / best);
  }
  std::ranges::sort(ratios);
  std::ranges::sort(orders);
  std::printf("first use against the best of %d! orders: median %.4f, worst %.4f; the worst order: median %.4f\n",
              kLayers, ratios[kInstances / 2], ratios.back(), orders[kInstances / 2]);
  EXPECT_LE(ratios[kInstances / 2], 1.01);
  EXPECT_LE(ratios.back(), 1.15);
}

}  // namespace
}  // namespace medley::sched
