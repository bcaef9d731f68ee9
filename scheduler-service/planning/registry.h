// Planners by name.
#pragma once

#include <absl/status/status.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler-service/planning/planner.h"

namespace medley::sched {

// One name may stand for a planner of units and one of devices; a request chooses by PlanRequest::on_devices.
class Registry {
 public:
  // The name must be unique among the planners of the same supply.
  void Add(std::unique_ptr<Planner> planner);
  // Null for an unknown name.
  const Planner* Find(std::string_view name, Supply supply) const;
  // In the order of Add.
  const std::vector<std::unique_ptr<Planner>>& planners() const { return planners_; }
  std::vector<const Planner*> Of(Supply supply) const;
  // The planners of each name, units first; names in the order of Add.
  std::vector<std::vector<const Planner*>> ByName() const;
  // Errors: InvalidArgument where no planner of this name takes such questions: what it takes instead, or which name is
  // close to it. `field`: where the name is.
  absl::Status CheckName(std::string_view name, Supply supply, std::string_view field = "planner.name") const;

 private:
  std::vector<std::unique_ptr<Planner>> planners_;
};

// What a request is about.
Supply SupplyOf(const model::PlanRequest& request);

}  // namespace medley::sched
