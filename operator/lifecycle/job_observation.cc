#include "operator/lifecycle/job_observation.h"

#include <algorithm>

#include "common/model/observation.h"
#include "common/model/placement.h"
#include "common/model/planning.h"
#include "common/model/profile.h"
#include "common/model/resource.h"
#include "operator/records/memory_check.h"

namespace medley::ops {
namespace {

// Index of the stage with the largest compute time.
size_t Slowest(const std::vector<StageTimes>& stages) {
  const auto slowest = std::max_element(stages.begin(), stages.end(), [](const StageTimes& a, const StageTimes& b) {
    return a.compute_seconds < b.compute_seconds;
  });
  return static_cast<size_t>(slowest - stages.begin());
}

// What a step takes a trainer in the long run: all of its processor time, where a part of a core is all that it has,
// else what its computation took. It leaves waiting out, and contains messages, which the clock of computation misses.
double ComputeSecondsOf(const StageTimes& times, const std::string& pool, const model::Profile& profile) {
  const auto unit = std::ranges::find(profile.units, pool, &model::UnitCpus::resource_type);
  const bool part = unit != profile.units.end() && unit->cores > 0 && unit->cores < 1;
  return part && times.processor_seconds > 0 ? times.processor_seconds / unit->cores : times.compute_seconds;
}

// Pools of the plan that are not offered any more. Their class is not known and not read.
void AddHeldPools(const PlanRecord& record, model::PlanRequest& request) {
  for (const auto& [pool, units] : model::TrainersByPool(record.plan)) {
    if (std::ranges::count(request.resources, pool, &model::Resource::name) > 0) continue;
    const auto price = record.usd_per_unit_hour.find(pool);
    model::Resource& held = request.resources.emplace_back();
    held.name = pool;
    held.limit = units;
    held.price_per_unit_hour = price == record.usd_per_unit_hour.end() ? 0 : price->second;
  }
}

model::PlanRequest RequestWith(const TrainingJob& job, const PlanRecord& record, const model::Profile& profile,
                               const Alternatives& alternatives) {
  JobProgress progress = alternatives.progress;
  progress.calibration = 1;
  model::PlanRequest request = BuildPlanRequest(job, profile, alternatives.offers, progress);
  LimitByUnitMemory(job, profile, alternatives.offers, request);
  // An observation is of stages.
  request.cluster = {};
  if (request.objective == model::Objective::kStepTime) request.objective = model::Objective::kTime;
  request.simulate = false;
  AddHeldPools(record, request);
  const bool inside = record.plan.servers && record.plan.servers->in_trainers;
  request.rows = inside ? model::RowsPlace::kTrainers : model::RowsPlace::kServers;
  const auto on_device = [](const model::Stage& stage) { return stage.tables.OnDevice(); };
  if (std::ranges::any_of(record.plan.stages, on_device)) request.rows = model::RowsPlace::kDevice;
  return request;
}

}  // namespace

bool IsComparable(const PlanRecord& record, const Observation& seen) {
  if (seen.phase != JobPhase::kTraining || seen.plan_generation != record.plan.generation || seen.next_generation != 0)
    return false;
  if (!seen.missing_members.empty() || !(seen.throughput > 0)) return false;
  if (seen.stages.size() != record.plan.stages.size()) return false;
  for (size_t s = 0; s < seen.stages.size(); ++s) {
    if (!(seen.stages[s].compute_seconds > 0) || seen.stages[s].units != record.plan.stages[s].Units()) return false;
  }
  return true;
}

std::optional<model::JobObservation> BuildJobObservation(const TrainingJob& job, const PlanRecord& record,
                                                         const Observation& seen, const Alternatives& alternatives) {
  if (!IsComparable(record, seen) || alternatives.offers.empty()) return std::nullopt;
  const auto merged = MergeProfiles(alternatives.profiles);
  if (!merged.ok()) return std::nullopt;
  model::JobObservation out;
  out.request = RequestWith(job, record, *merged, alternatives);
  const bool inside = record.plan.servers && record.plan.servers->in_trainers;
  out.throughput = seen.throughput;
  out.batch_size = job.batch_size;
  out.server_units = record.plan.servers && !inside ? record.plan.servers->units : 0;
  out.usd_per_hour = record.UsdPerHour({});
  out.job_uid = job.object.uid();
  out.generation = seen.generation;
  const size_t slowest = Slowest(seen.stages);
  for (size_t s = 0; s < seen.stages.size(); ++s) {
    const model::Stage& stage = record.plan.stages[s];
    const StageTimes& times = seen.stages[s];
    if (stage.groups.size() != 1 || stage.operations.size() != 1) return std::nullopt;
    const bool waits = s == slowest && times.comm_seconds > times.compute_seconds;
    out.stages.push_back({stage.operations.front().first, stage.operations.front().end - 1, stage.groups.front().pool,
                          stage.groups.front().units, ComputeSecondsOf(times, stage.groups.front().pool, *merged),
                          waits ? times.comm_seconds : 0});
  }
  if (!model::Validate(out).ok()) return std::nullopt;
  return out;
}

std::vector<std::string> TrainerPools(const PlanRecord& record) {
  std::vector<std::string> pools;
  for (const model::Stage& stage : record.plan.stages) {
    for (const model::Group& group : stage.groups) {
      if (std::find(pools.begin(), pools.end(), group.pool) == pools.end()) pools.push_back(group.pool);
    }
  }
  for (const model::Device& device : record.plan.devices) {
    if (std::find(pools.begin(), pools.end(), device.pool) == pools.end()) pools.push_back(device.pool);
  }
  return pools;
}

}  // namespace medley::ops
