#include "scheduler-service/pipeline/repair.h"

#include "tests/unit/scheduler-service/pipeline/pipelines.h"

namespace medley::sched {
namespace {

using Stages = std::vector<PipelineStage>;

DeviceProblem FourLayers(int devices = 3) { return ProblemOf(ClusterRequest({devices}, {1}, 4)); }

TEST(RepairTest, ALegalAssignmentStays) {
  const auto repaired = RepairPipeline(FourLayers(), {5, 5, 7, 7}, {{}, {}, {}, {}, {}, {2, 0}, {}, {1}});
  EXPECT_FALSE(repaired.changed);
  EXPECT_EQ(repaired.stages, (Stages{{0, 2, {0, 2}}, {2, 4, {1}}}));
}

TEST(RepairTest, AGroupInTwoPlacesKeepsTheLarger) {
  const auto repaired = RepairPipeline(FourLayers(), {0, 1, 0, 0}, {{0}, {1}});
  EXPECT_TRUE(repaired.changed);
  EXPECT_EQ(repaired.stages, (Stages{{0, 2, {1}}, {2, 4, {0}}}));
}

TEST(RepairTest, ADeviceOfTwoGroupsServesTheFirst) {
  const auto repaired = RepairPipeline(FourLayers(), {0, 0, 1, 1}, {{0, 1}, {1}});
  EXPECT_TRUE(repaired.changed);
  EXPECT_EQ(repaired.stages, (Stages{{0, 2, {0, 1}}, {2, 4, {2}}}));  // the second takes one that is not used
}

TEST(RepairTest, FewerDevicesThanGroups) {
  const auto repaired = RepairPipeline(FourLayers(2), {0, 1, 2, 3}, {{1}, {}, {}, {0}});
  EXPECT_TRUE(repaired.changed);
  EXPECT_EQ(repaired.stages, (Stages{{0, 3, {1}}, {3, 4, {0}}}));
  EXPECT_EQ(RepairPipeline(FourLayers(1), {0, 1, 2, 3}, {}).stages, (Stages{{0, 4, {0}}}));
  EXPECT_EQ(RepairPipeline(FourLayers(1), {0, 1, 2, 3}, {{}, {0}}).stages, (Stages{{0, 4, {0}}}));
}

TEST(RepairTest, AnyAssignmentBecomesLegal) {
  base::Rng rng(9);
  for (int round = 0; round < 300; ++round) {
    const DeviceProblem problem =
        RandomPipelineProblem(rng, 1 + static_cast<int>(rng.Below(6)), 1 + static_cast<int>(rng.Below(9)));
    const uint64_t groups = 1 + rng.Below(8);
    std::vector<int> group_of_layer;
    for (int l = 0; l < problem.layers(); ++l) group_of_layer.push_back(static_cast<int>(rng.Below(groups)));
    std::vector<std::vector<int>> devices(rng.Below(groups + 1));
    for (auto& group : devices) {
      for (uint64_t i = rng.Below(4); i > 0; --i) {
        group.push_back(static_cast<int>(rng.Below(static_cast<uint64_t>(problem.devices()))));
      }
    }
    const auto repaired = RepairPipeline(problem, group_of_layer, devices);
    ExpectLegal(problem, repaired.stages);
    SimulatedSeconds(problem, repaired.stages);
  }
}

// Values that skip a stage would be refused by the asynchronous generator: cuts are where one value crosses.
TEST(RepairTest, StagesEndWhereOneValueCrosses) {
  model::PlanRequest request = ClusterRequest({3}, {1}, 5);
  request.planner.schedule = model::ScheduleKind::kAsync1F1B;
  request.model.layers[3].inputs = {0, 2};  // layer 0 is used around layers 1 and 2
  const DeviceProblem problem = ProblemOf(request);
  EXPECT_EQ(problem.cuts(), (std::vector<int>{1, 4}));
  const auto repaired = RepairPipeline(problem, {0, 1, 2, 2, 2}, {{0}, {1}, {2}});
  ExpectLegal(problem, repaired.stages);
  SimulatedSeconds(problem, repaired.stages);
  request.planner.schedule = model::ScheduleKind::kSync1F1B;
  EXPECT_EQ(ProblemOf(request).cuts(), (std::vector<int>{1, 2, 3, 4}));
}

}  // namespace
}  // namespace medley::sched
