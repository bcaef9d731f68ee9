#include "scheduler-service/planner/schedule_names.h"

#include "common/base/status.h"

namespace medley::sched {

absl::StatusOr<std::vector<StageChoice>> ReadSchedule(const Problem& problem, std::span<const std::string> schedule) {
  if (schedule.size() != static_cast<size_t>(problem.layers())) {
    return base::InvalidArgument("schedule: has {} entries for {} layers", schedule.size(), problem.layers());
  }
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
  return StagesOf(types);
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
