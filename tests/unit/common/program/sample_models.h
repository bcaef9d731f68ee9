// Models and plans of the tests of programs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "common/model/allreduce_algorithm.h"
#include "common/model/execution_plan.h"
#include "common/model/model.h"
#include "common/model/sync.h"
#include "common/model/synchronisation.h"

namespace medley::program {

// An operation with dense parameters of `bytes` (0: none).
inline model::Layer Dense(std::string name, double bytes = 400, std::vector<int> inputs = {}) {
  model::Layer layer;
  layer.name = std::move(name);
  layer.weight_bytes = bytes;
  layer.output_bytes = 40;
  layer.inputs = std::move(inputs);
  return layer;
}
inline model::Layer Table(std::string name, std::vector<int> inputs = {}) {
  model::Layer layer = Dense(std::move(name), 4000, std::move(inputs));
  layer.sparse = true;
  return layer;
}

// emb | a | b | loss, the first with rows.
inline model::Model ChainModel() { return {"chain", {Table("emb"), Dense("a"), Dense("b"), Dense("loss", 0)}}; }

// Two towers (u1 u2, v1 v2) that meet in `top`, and a connection from u1 around u2 to top; then the loss.
inline model::Model TowersModel() {
  return {"towers",
          {Dense("u1", 400, {-1}), Dense("u2", 400, {0}), Dense("v1", 400, {-1}), Dense("v2", 400, {2}),
           Dense("top", 400, {0, 1, 3}), Dense("loss", 0, {4})}};
}

inline model::Sync Allreduce(model::AllreduceAlgorithm algorithm = model::AllreduceAlgorithm::kRing) {
  return {.kind = model::SyncKind::kAllreduce, .algorithm = algorithm};
}

// Stages of `units` of one pool each, which together cover operations up to each of `ends`.
inline model::ExecutionPlan StagesPlan(const std::vector<std::pair<int, int>>& ends_and_units, int micros,
                                       model::ScheduleKind kind = model::ScheduleKind::kSync1F1B) {
  model::ExecutionPlan plan;
  int first = 0;
  for (const auto& [end, units] : ends_and_units) {
    model::Stage stage;
    stage.operations = {{first, end}};
    stage.groups = {{"p" + std::to_string(plan.stages.size()), units, 1}};
    stage.syncs = {{{{first, end}}, Allreduce()}};
    plan.stages.push_back(std::move(stage));
    first = end;
  }
  plan.schedule = {kind, micros};
  return plan;
}

}  // namespace medley::program
