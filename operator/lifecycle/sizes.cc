#include "operator/lifecycle/sizes.h"

#include <algorithm>
#include <cmath>

#include "operator/lifecycle/pass.h"

namespace medley::ops::lifecycle {
namespace {

constexpr base::seconds kSettle{10};  // the coordinator's rate is that of the last 5 s
constexpr base::seconds kEach{5};
constexpr int64_t kMemory = 24;  // measurements, of which older ones count less
constexpr size_t kMostSizes = 64;

// The only pool and the number of units of a plan of a program; nullptr: it is another plan.
const model::Group* GroupOf(const Pass& pass) {
  const std::optional<PlanRecord>& record = pass.memory.stored_plan.record;
  if (!record || record->plan.provenance.planner != "program" || record->plan.stages.size() != 1) return nullptr;
  const std::vector<model::Group>& groups = record->plan.stages.front().groups;
  return groups.size() == 1 ? &groups.front() : nullptr;
}

bool TrainsAsPlanned(const Pass& pass) {
  const Observation& seen = *pass.observed;
  return seen.phase == JobPhase::kTraining && seen.next_generation == 0 && seen.missing_members.empty() &&
         seen.plan_generation == pass.memory.stored_plan.record->plan.generation && seen.throughput > 0 &&
         seen.step > 0 && seen.samples_done > 0;
}

SizeStatus& EntryOf(const model::Group& group, std::vector<SizeStatus>& sizes) {
  const auto found = std::ranges::find_if(
      sizes, [&](const SizeStatus& size) { return size.pool == group.pool && size.units == group.units; });
  if (found != sizes.end()) return *found;
  if (sizes.size() >= kMostSizes) sizes.erase(sizes.begin());
  return sizes.emplace_back(SizeStatus{group.pool, group.units});
}

}  // namespace

void RecordSize(Pass& pass) {
  const model::Group* const group = GroupOf(pass);
  if (group == nullptr) return;
  SizesState& state = pass.Own(&Memory::sizes);
  const base::SteadyTime now = pass.world.steady;
  const Observation& seen = *pass.observed;
  if (!TrainsAsPlanned(pass)) {
    state.generation = 0;
    return;
  }
  if (state.generation != seen.generation) {
    state.generation = seen.generation;
    state.since = state.measured_at = now;
  }
  if (now - state.since < kSettle || now - state.measured_at < kEach) return;
  state.measured_at = now;
  // All steps of a program have the same number of samples.
  const double samples = static_cast<double>(seen.samples_done) / static_cast<double>(seen.step);
  const double seconds = samples / seen.throughput;
  SizeStatus& size = EntryOf(*group, pass.report.sizes);
  size.measurements = std::min(size.measurements + 1, kMemory);
  const auto count = static_cast<double>(size.measurements);
  const double before = size.seconds_per_step;
  const double variance = std::pow(size.spread * before, 2);
  size.seconds_per_step = before + (seconds - before) / count;
  const double moved = variance + ((seconds - before) * (seconds - size.seconds_per_step) - variance) / count;
  size.spread = size.measurements > 1 ? std::sqrt(std::max(0.0, moved)) / size.seconds_per_step : 0;
}

MeasuredSizes SizesOf(const Pass& pass) {
  MeasuredSizes sizes;
  for (const SizeStatus& size : pass.report.sizes) {
    if (size.units < 1 || !(size.seconds_per_step > 0)) continue;
    sizes[size.pool].push_back({size.units, size.seconds_per_step, size.spread});
  }
  return sizes;
}

bool KnowsSize(const Pass& pass) {
  const model::Group* const group = GroupOf(pass);
  return group != nullptr && std::ranges::any_of(pass.report.sizes, [&](const SizeStatus& size) {
           return size.pool == group->pool && size.units == group->units;
         });
}

}  // namespace medley::ops::lifecycle
