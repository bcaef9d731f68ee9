// What the tests of pipelines share.
#pragma once

#include <gmock/gmock.h>

#include <set>

#include "common/base/testing/status_matchers.h"
#include "common/model/execution_plan.h"
#include "scheduler-service/devices/device_simulator.h"
#include "scheduler-service/planning/planner.h"
#include "tests/unit/scheduler-service/devices/random_cluster.h"

namespace medley::sched {

inline Budget NoLimits() {
  static const base::SystemClock clock;
  return {clock, base::SteadyTime::max(), {}};
}

inline DeviceProblem RandomPipelineProblem(base::Rng& rng, int devices, int layers, bool asynchronous = true) {
  model::PlanRequest request = RandomClusterRequest(rng, devices, layers);
  for (model::Layer& layer : request.model.layers) {
    const double work = LogUniform(rng, 0.1, 10);
    layer.weight_bytes *= LogUniform(rng, 0.01, 10);
    layer.output_bytes *= LogUniform(rng, 0.1, 10);
    for (model::LayerProfile& times : layer.profiles) times.compute_seconds *= work;
  }
  if (asynchronous) {
    request.planner.schedule = model::ScheduleKind::kAsync1F1B;
  } else {
    request.training.micro_batches = 4;
  }
  return ProblemOf(std::move(request));
}

// Two equal devices with slow links, for a batch of four micro-batches. Where a batch is mostly passes over large
// weights, `undivided` is what computing it in one piece takes, as a part of what its micro-batches take together.
inline model::PlanRequest TwoFarDevices(double undivided) {
  model::PlanRequest request = ClusterRequest({2}, {1}, 6);
  request.planner.schedule = model::ScheduleKind::kAsync1F1B;
  request.cluster.links = {{"*", "*", 1, 1e3}};  // nothing else is worth while
  request.training.micro_batches = 4;
  for (model::Layer& layer : request.model.layers) {
    for (model::LayerProfile& times : layer.profiles) {
      if (undivided >= 1) continue;
      times.compute_parallel = 0.5;
      times.undivided_seconds = undivided * times.compute_seconds;
    }
  }
  return request;
}

inline double SimulatedSeconds(const DeviceProblem& problem, const std::vector<PipelineStage>& stages) {
  DeviceSimulator evaluator(problem, {});
  const auto seconds = evaluator.Seconds(BuildPipeline(problem, stages));
  EXPECT_THAT(seconds, base::IsOk());
  return seconds.value_or(0);
}

// Stages cover all layers in order at legal cuts, and a device serves one of them.
inline void ExpectLegal(const DeviceProblem& problem, const std::vector<PipelineStage>& stages) {
  ASSERT_FALSE(stages.empty());
  std::set<int> used;
  int next = 0;
  const std::set<int> cuts(problem.cuts().begin(), problem.cuts().end());
  for (const PipelineStage& stage : stages) {
    EXPECT_EQ(stage.first, next);
    EXPECT_GT(stage.end, stage.first);
    EXPECT_TRUE(stage.first == 0 || cuts.contains(stage.first));
    EXPECT_FALSE(stage.devices.empty());
    for (const int d : stage.devices) EXPECT_TRUE(used.insert(d).second) << d;
    next = stage.end;
  }
  EXPECT_EQ(next, problem.layers());
}

}  // namespace medley::sched
