#include "scheduler-service/planner/execution_plan.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "common/model/allreduce.h"
#include "common/model/allreduce_algorithm.h"
#include "common/model/execution_plan.h"
#include "common/model/model.h"
#include "common/model/planning.h"
#include "common/model/sync.h"
#include "common/model/synchronisation.h"
#include "scheduler-service/cost/evaluate.h"
#include "scheduler-service/planner/hierarchy.h"

namespace medley::sched {
namespace {

std::optional<model::Sync> SyncOf(const Problem& problem, int layer, const StageChoice& stage, bool servers,
                                  const std::vector<model::HierarchyLevel>& hierarchy) {
  const model::Layer& op = problem.request().model.layers[static_cast<size_t>(layer)];
  const bool served = op.sparse || model::NeedsServers(op, problem.type(stage.type).name);
  model::Sync sync;
  const model::Synchronisation& how = problem.request().planner.sync;
  if (stage.units > 1 && how.detector != model::AnomalyDetector::kOff) {
    sync.detector = how.detector;
    sync.anomaly_window = how.anomaly_window;
    sync.anomaly_threshold = how.anomaly_threshold;
  }
  if (servers && served) {
    sync.kind = model::SyncKind::kParameterServer;
    return sync;
  }
  if (op.weight_bytes <= 0) return std::nullopt;
  if (stage.units > 1) {
    sync.kind = model::SyncKind::kAllreduce;
    sync.mode = how.mode;
    if (how.mode == model::SyncMode::kPercentage) sync.fraction = how.fraction;
    if (how.mode == model::SyncMode::kFlexible) sync.target_ratio = how.target_ratio;
    sync.hierarchy = hierarchy;
  }
  return sync;
}

// Adds a layer to the entry for `sync`. Each distinct synchronisation has one entry, with maximal ranges of operations.
void AddSync(std::vector<model::OperationSync>& syncs, const model::Sync& sync, int layer) {
  for (model::OperationSync& entry : syncs) {
    if (!(entry.sync == sync)) continue;
    if (entry.operations.back().end == layer) {
      ++entry.operations.back().end;
    } else {
      entry.operations.push_back({layer, layer + 1});
    }
    return;
  }
  syncs.push_back({{{layer, layer + 1}}, sync});
}

// The rules that resolve AUTO among the replicas of each stage, and in a hierarchy among the members of each group and
// among the groups. Stages with the same number of them share rules, which must suit the types of all.
std::vector<model::AlgorithmRule> RulesOf(const Problem& problem, const std::vector<model::Stage>& stages) {
  std::map<int, std::set<std::string>> pools;  // by replicas that add
  for (const model::Stage& stage : stages) {
    const std::string& pool = stage.groups.front().pool;
    pools[stage.Units()].insert(pool);
    for (const model::OperationSync& entry : stage.syncs) {
      for (const model::HierarchyLevel& level : entry.sync.hierarchy) {
        pools[static_cast<int>(level.groups.size())].insert(pool);
        for (const std::vector<std::string>& group : level.groups) pools[static_cast<int>(group.size())].insert(pool);
      }
    }
  }
  std::vector<model::AlgorithmRule> rules;
  for (const auto& [replicas, names] : pools) {
    const std::vector<std::string> all(names.begin(), names.end());
    const auto added = model::MeasuredRules(replicas, all, problem.request().allreduces);
    rules.insert(rules.end(), added.begin(), added.end());
  }
  return rules;
}

}  // namespace

model::ExecutionPlan BuildExecutionPlan(const Problem& problem, const std::vector<StageChoice>& stages) {
  const Score score = ScoreOf(problem, stages);
  const bool inside = problem.rows_in_trainers() && std::ranges::any_of(stages, [&](const StageChoice& s) {
                        return problem.PullsRows(s.first, s.last, s.type);
                      });
  model::ExecutionPlan plan;
  std::map<std::string, int> before;  // units of the stages before, by pool
  for (const StageChoice& choice : stages) {
    model::Stage stage;
    stage.operations = {{choice.first, choice.last + 1}};
    stage.groups = {{problem.type(choice.type).name, choice.units, 1.0}};
    stage.tables = problem.TablesIn(choice.first, choice.last, choice.type);
    const std::vector<model::HierarchyLevel> hierarchy =
        MakeHierarchy(problem.request().planner.sync.hierarchy, stage.groups, before);
    before[stage.groups.front().pool] += choice.units;
    for (int layer = choice.first; layer <= choice.last; ++layer) {
      const auto sync = SyncOf(problem, layer, choice, inside || score.server_units > 0, hierarchy);
      if (sync) AddSync(stage.syncs, *sync, layer);
    }
    plan.stages.push_back(std::move(stage));
  }
  plan.algorithms = RulesOf(problem, plan.stages);
  if (inside) plan.servers = model::Servers{"", model::TrainersThatPullRows(plan), true};
  if (score.server_units > 0) plan.servers = model::Servers{problem.request().server_type, score.server_units};
  plan.schedule.kind = problem.request().planner.schedule;
  plan.schedule.max_staleness = problem.request().planner.max_staleness;
  plan.schedule.micro_batches = std::max(1, problem.request().training.micro_batches);
  plan.estimate.throughput = score.throughput;
  plan.estimate.usd_per_hour = score.hourly;
  plan.estimate.usd_total = score.cost;
  plan.estimate.seconds_total = problem.total_samples() / score.throughput;
  return plan;
}

}  // namespace medley::sched
