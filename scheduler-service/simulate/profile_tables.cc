#include "scheduler-service/simulate/profile_tables.h"

#include <algorithm>

namespace medley::sched {
namespace {

void Change(const model::Tables& tables, model::LayerProfile& times) {
  const model::TablesOnDevice& measured = *times.tables;
  const double missed = tables.place == model::TablePlace::kCache ? (1 - tables.hits) * measured.missed_seconds : 0;
  const double own = times.compute_seconds - times.sync_processor_seconds;
  const double seconds = measured.seconds + missed;
  // A quota grants the same part of either.
  times.burst_seconds = own > 0 ? times.burst_seconds * (seconds / own) : 0;
  times.compute_seconds = seconds;
  times.compute_parallel = 0;
  times.undivided_seconds = 0;
  times.sync_seconds = times.sync_processor_seconds = times.server_seconds = 0;
}

}  // namespace

bool HasTablesOnDevice(const model::ExecutionPlan& plan) {
  return std::ranges::any_of(plan.stages, [](const model::Stage& stage) { return stage.tables.OnDevice(); });
}

model::Profile ForTables(model::Profile profile, const model::ExecutionPlan& plan) {
  const int layers = static_cast<int>(profile.model.layers.size());
  for (const model::Stage& stage : plan.stages) {
    if (!stage.tables.OnDevice() || stage.groups.empty()) continue;
    for (const model::OperationRange& range : stage.operations) {
      for (int i = std::max(0, range.first); i < std::min(range.end, layers); ++i) {
        for (model::LayerProfile& times : profile.model.layers[static_cast<size_t>(i)].profiles) {
          if (times.tables && times.resource_type == stage.groups.front().pool) Change(stage.tables, times);
        }
      }
    }
  }
  return profile;
}

}  // namespace medley::sched
