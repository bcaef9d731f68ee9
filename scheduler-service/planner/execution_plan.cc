#include "scheduler-service/planner/execution_plan.h"

#include <map>
#include <optional>
#include <string>

#include "common/model/allreduce.h"
#include "scheduler-service/cost/evaluate.h"

namespace medley::sched {
namespace {

std::optional<model::Sync> SyncOf(const Problem& problem, int layer, const StageChoice& stage, bool servers) {
  const model::Layer& op = problem.request().model.layers[static_cast<size_t>(layer)];
  const bool served = op.sparse || model::NeedsServers(op, problem.type(stage.type).name);
  model::Sync sync;
  if (servers && served) {
    sync.kind = model::SyncKind::kParameterServer;
    return sync;
  }
  if (op.weight_bytes <= 0) return std::nullopt;
  if (stage.units > 1) {
    const model::Synchronisation& how = problem.request().planner.sync;
    sync.kind = model::SyncKind::kAllreduce;
    sync.mode = how.mode;
    if (how.mode == model::SyncMode::kPercentage) sync.fraction = how.fraction;
    if (how.mode == model::SyncMode::kFlexible) sync.target_ratio = how.target_ratio;
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

// The rules that resolve AUTO. Stages with the same number of units share them, so they must suit the types of all.
std::vector<model::AlgorithmRule> RulesOf(const Problem& problem, const std::vector<StageChoice>& stages) {
  std::map<int, std::vector<std::string>> types;  // by units
  for (const StageChoice& stage : stages) types[stage.units].push_back(problem.type(stage.type).name);
  std::vector<model::AlgorithmRule> rules;
  for (const auto& [units, names] : types) {
    const auto added = model::MeasuredRules(units, names, problem.request().allreduces);
    rules.insert(rules.end(), added.begin(), added.end());
  }
  return rules;
}

}  // namespace

model::ExecutionPlan BuildExecutionPlan(const Problem& problem, const std::vector<StageChoice>& stages) {
  const Score score = ScoreOf(problem, stages);
  model::ExecutionPlan plan;
  for (const StageChoice& choice : stages) {
    model::Stage stage;
    stage.operations = {{choice.first, choice.last + 1}};
    stage.groups = {{problem.type(choice.type).name, choice.units, 1.0}};
    for (int layer = choice.first; layer <= choice.last; ++layer) {
      const auto sync = SyncOf(problem, layer, choice, score.server_units > 0);
      if (sync) AddSync(stage.syncs, *sync, layer);
    }
    plan.stages.push_back(std::move(stage));
  }
  plan.algorithms = RulesOf(problem, stages);
  if (score.server_units > 0) plan.servers = model::Servers{problem.request().server_type, score.server_units};
  plan.schedule.kind = problem.request().planner.schedule;
  plan.schedule.max_staleness = problem.request().planner.max_staleness;
  plan.schedule.micro_batches = problem.request().training.micro_batches;
  plan.estimate.throughput = score.throughput;
  plan.estimate.usd_per_hour = score.hourly;
  plan.estimate.usd_total = score.cost;
  plan.estimate.seconds_total = problem.total_samples() / score.throughput;
  return plan;
}

}  // namespace medley::sched
