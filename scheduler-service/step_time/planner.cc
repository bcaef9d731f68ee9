#include "scheduler-service/step_time/planner.h"

#include "common/base/status.h"

namespace medley::sched {

void StepTimeRegistry::Add(std::unique_ptr<StepTimePlanner> planner) {
  MEDLEY_CHECK(Find(planner->name()) == nullptr, "two planners have the same name");
  planners_.push_back(std::move(planner));
}

const StepTimePlanner* StepTimeRegistry::Find(std::string_view name) const {
  const auto found = std::ranges::find_if(planners_, [&](const auto& planner) { return planner->name() == name; });
  return found == planners_.end() ? nullptr : found->get();
}

}  // namespace medley::sched
