#include "scheduler-service/devices/plans.h"

#include <algorithm>
#include <utility>

#include "common/base/status.h"
#include "common/model/allreduce.h"
#include "common/model/execution_plan.h"
#include "common/model/sync.h"
#include "scheduler-service/devices/shares.h"

namespace medley::sched {
namespace {

model::ExecutionPlan EmptyPlan(const DeviceProblem& problem) {
  model::ExecutionPlan plan;
  plan.schedule.kind = problem.request().planner.schedule;
  plan.schedule.max_staleness = problem.request().planner.max_staleness;
  plan.schedule.micro_batches = problem.micro_batches();
  return plan;
}

model::Sync SyncOf(const DeviceProblem& problem) {
  const model::Synchronisation& how = problem.request().planner.sync;
  model::Sync sync;
  sync.kind = model::SyncKind::kAllreduce;
  sync.mode = how.mode;
  if (how.mode == model::SyncMode::kPercentage) sync.fraction = how.fraction;
  if (how.mode == model::SyncMode::kFlexible) sync.target_ratio = how.target_ratio;
  return sync;
}

}  // namespace

model::ExecutionPlan BuildDataParallel(const DeviceProblem& problem, const DataParallel& how) {
  model::ExecutionPlan plan = EmptyPlan(problem);
  model::Placement& placement = plan.placements.emplace_back();
  placement.operations = {{0, problem.layers()}};
  for (size_t i = 0; i < how.devices.size(); ++i) {
    const model::Device& device = problem.device(how.devices[i]);
    plan.devices.push_back(device);
    placement.replicas.push_back({device.id, how.shares[i]});
  }
  if (how.devices.size() < 2) return plan;
  placement.sync = SyncOf(problem);
  for (size_t l = 0; l < how.levels.size(); ++l) {
    model::HierarchyLevel& level = placement.sync.hierarchy.emplace_back();
    level.algorithm = how.algorithms[l];
    for (const std::vector<int>& group : how.levels[l]) {
      std::vector<std::string>& ids = level.groups.emplace_back();
      for (const int d : group) ids.push_back(problem.device(d).id);
    }
  }
  placement.sync.algorithm = how.algorithms.back();
  return plan;
}

model::ExecutionPlan BuildPipeline(const DeviceProblem& problem, const std::vector<PipelineStage>& stages) {
  model::ExecutionPlan plan = EmptyPlan(problem);
  for (const PipelineStage& stage : stages) {
    model::Placement& placement = plan.placements.emplace_back();
    placement.operations = {{stage.first, stage.end}};
    std::vector<DeviceProblem::Work> work;
    for (const int d : stage.devices) work.push_back(problem.WorkOf(stage.first, stage.end, d));
    const Shares shares = BalancedSamples(work, problem.samples());
    std::vector<int> used;
    for (size_t i = 0; i < stage.devices.size(); ++i) {
      if (shares.shares[i] <= 0) continue;
      used.push_back(stage.devices[i]);
      plan.devices.push_back(problem.device(stage.devices[i]));
      placement.replicas.push_back({problem.device(stage.devices[i]).id, shares.shares[i]});
    }
    if (used.size() < 2 || problem.WeightBytes(stage.first, stage.end) <= 0) continue;
    placement.sync = SyncOf(problem);
    const auto link = [&](int a, int b) {
      return problem.Link(used[static_cast<size_t>(a)], used[static_cast<size_t>(b)]);
    };
    const double bytes = problem.WeightBytes(stage.first, stage.end);
    const auto count = static_cast<int>(used.size());
    using enum model::AllreduceAlgorithm;
    placement.sync.algorithm = model::AllreduceSeconds(kRecursiveDoubling, count, link, bytes) <
                                       model::AllreduceSeconds(kRing, count, link, bytes)
                                   ? kRecursiveDoubling
                                   : kRing;
  }
  return plan;
}

std::string PipelineText(const DeviceProblem& problem, const std::vector<PipelineStage>& stages) {
  const auto name = [&](int layer) {
    const std::string& given = problem.profile().model.layers[static_cast<size_t>(layer)].name;
    return given.empty() ? std::to_string(layer) : given;
  };
  std::string text;
  for (const PipelineStage& stage : stages) {
    text += text.empty() ? "" : " | ";
    text += name(stage.first);
    if (stage.end - stage.first > 1) text += ".." + name(stage.end - 1);
    for (size_t i = 0; i < stage.devices.size(); ++i) {
      text += (i == 0 ? " @ " : "+") + problem.device(stage.devices[i]).id;
    }
  }
  return text;
}

}  // namespace medley::sched
