#include "reproductions/heterog/features.h"

#include <cmath>

#include "tests/unit/scheduler-service/graph/graphs.h"

namespace medley::reproductions::heterog {
namespace {

TEST(AgentFeaturesTest, RowsOfAllTables) {
  base::Rng rng(11);
  const sched::DeviceProblem problem = sched::RandomGraphProblem(rng, 5, 20);
  const AgentFeatures features = FeaturesOfGraph(problem, sched::GroupOperations(problem, 6));
  EXPECT_EQ(features.operations, 20);
  EXPECT_EQ(features.groups, 6);
  EXPECT_EQ(features.devices, 5);
  EXPECT_EQ(std::ssize(features.operation), 20 * kOperationWidth);
  EXPECT_EQ(std::ssize(features.group), 6 * kGroupWidth);
  EXPECT_EQ(std::ssize(features.device), 5 * kDeviceWidth);
  EXPECT_EQ(std::ssize(features.pair), 6 * 5 * kPairWidth);
  size_t edges = 20;  // each operation with itself
  for (int i = 0; i < 20; ++i) edges += 2 * problem.inputs(i).size();
  EXPECT_EQ(features.from.size(), edges);
  EXPECT_EQ(features.to.size(), edges);
  for (const auto* table : {&features.operation, &features.group, &features.device, &features.pair}) {
    for (const float value : *table) EXPECT_TRUE(std::isfinite(value) && value >= 0) << value;
  }
}

// What all values are multiplied with changes nothing: the same weights serve a cluster that is twice as fast.
TEST(AgentFeaturesTest, AreRelative) {
  base::Rng rng(12);
  const sched::DeviceProblem problem = sched::RandomGraphProblem(rng, 4, 12);
  model::PlanRequest faster = problem.request();
  for (model::Layer& layer : faster.model.layers) {
    for (model::LayerProfile& times : layer.profiles) times.compute_seconds /= 2;
  }
  for (model::ClusterLink& link : faster.cluster.links) link.bytes_per_second *= 2;
  const sched::DeviceProblem other = sched::ProblemOf(std::move(faster));
  const AgentFeatures a = FeaturesOfGraph(problem, sched::GroupOperations(problem, 4)),
                      b = FeaturesOfGraph(other, sched::GroupOperations(other, 4));
  const auto near = [](const std::vector<float>& x, const std::vector<float>& y) {
    ASSERT_EQ(x.size(), y.size());
    for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], y[i], 0.02) << i;  // a launch has seconds of its own
  };
  near(a.operation, b.operation);
  near(a.group, b.group);
  near(a.device, b.device);
  near(a.pair, b.pair);
}

TEST(AgentFeaturesTest, OneDeviceAndOperationsThatCostNothing) {
  base::Rng rng(13);
  model::PlanRequest request = sched::RandomGraphProblem(rng, 1, 5).request();
  for (model::Layer& layer : request.model.layers) {
    layer.weight_bytes = layer.output_bytes = 0;
    for (model::LayerProfile& times : layer.profiles) times.compute_seconds = 0;
  }
  const sched::DeviceProblem problem = sched::ProblemOf(std::move(request));
  const AgentFeatures features = FeaturesOfGraph(problem, sched::GroupOperations(problem, 3));
  for (const float value : features.operation) EXPECT_TRUE(std::isfinite(value));
  for (const float value : features.pair) EXPECT_TRUE(std::isfinite(value));
}

}  // namespace
}  // namespace medley::reproductions::heterog
