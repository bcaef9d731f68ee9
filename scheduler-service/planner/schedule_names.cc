#include "scheduler-service/planner/schedule_names.h"

#include "common/base/status.h"

namespace medley::sched {

absl::StatusOr<std::vector<StageChoice>> ReadSchedule(const Problem& problem, std::span<const std::string> schedule,
                                                      std::span<const int> cuts) {
  if (schedule.size() != static_cast<size_t>(problem.layers())) {
    return base::InvalidArgument("schedule: has {} entries for {} layers", schedule.size(), problem.layers());
  }
  const size_t given = cuts.size();
  std::vector<int> types;
  for (size_t i = 0; i < schedule.size(); ++i) {
    int found = -1;
    for (int t = 0; t < problem.types(); ++t) {
      if (problem.type(t).name == schedule[i]) found = t;
    }
    if (found < 0) return base::InvalidArgument("schedule[{}]: '{}' is not in resources", i, schedule[i]);
    if (!problem.Profiled(static_cast<int>(i), found)) {
      return base::InvalidArgument("schedule[{}]: layer {} has no profile on '{}'", i, i, schedule[i]);
    }
    types.push_back(found);
  }
  std::vector<StageChoice> stages;
  for (const StageChoice& run : StagesOf(types)) {
    stages.push_back(run);
    // The cuts before were taken by earlier runs, so those of this run come next.
    for (; !cuts.empty() && cuts.front() > run.first && cuts.front() <= run.last; cuts = cuts.subspan(1)) {
      if (cuts.front() <= stages.back().first) break;
      stages.back().last = cuts.front() - 1;
      stages.push_back({cuts.front(), run.last, run.type, 0});
    }
  }
  if (cuts.empty()) return stages;
  const size_t at = given - cuts.size();
  return base::InvalidArgument(
      "cuts[{}]: must be a layer whose type is that of the layer before, and above the cuts before it, is {}", at,
      cuts.front());
}

absl::Status SetUnits(std::span<const int> units, std::vector<StageChoice>& stages) {
  if (units.size() != stages.size()) {
    return base::InvalidArgument("units: has {} entries, the schedule has {} stages", units.size(), stages.size());
  }
  for (size_t i = 0; i < stages.size(); ++i) {
    if (units[i] <= 0) return base::InvalidArgument("units[{}]: must be positive, is {}", i, units[i]);
    stages[i].units = units[i];
  }
  return absl::OkStatus();
}

}  // namespace medley::sched
