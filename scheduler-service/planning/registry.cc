#include "scheduler-service/planning/registry.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "common/base/closest.h"
#include "common/base/status.h"
#include "common/model/planning.h"

namespace medley::sched {
namespace {

constexpr Supply kSupplies[] = {Supply::kUnits, Supply::kDevices};

std::string_view KindName(Supply supply) {
  return supply == Supply::kDevices ? "on the devices of a cluster" : "with stages of some units";
}

Supply Other(Supply supply) { return supply == Supply::kUnits ? Supply::kDevices : Supply::kUnits; }

}  // namespace

void Registry::Add(std::unique_ptr<Planner> planner) {
  MEDLEY_CHECK(Find(planner->name(), planner->takes().supply) == nullptr, "two planners have the same name");
  planners_.push_back(std::move(planner));
}

const Planner* Registry::Find(std::string_view name, Supply supply) const {
  for (const auto& planner : planners_) {
    if (planner->name() == name && planner->takes().supply == supply) return planner.get();
  }
  return nullptr;
}

std::vector<const Planner*> Registry::Of(Supply supply) const {
  std::vector<const Planner*> of;
  for (const auto& planner : planners_) {
    if (planner->takes().supply == supply) of.push_back(planner.get());
  }
  return of;
}

std::vector<std::vector<const Planner*>> Registry::ByName() const {
  std::vector<std::vector<const Planner*>> list;
  for (const auto& planner : planners_) {
    const auto same = [&](const auto& others) { return others.front()->name() == planner->name(); };
    if (std::ranges::any_of(list, same)) continue;
    list.emplace_back();
    for (const Supply supply : kSupplies) {
      if (const Planner* one = Find(planner->name(), supply)) list.back().push_back(one);
    }
  }
  return list;
}

absl::Status Registry::CheckName(std::string_view name, Supply supply, std::string_view field) const {
  if (Find(name, supply) != nullptr) return absl::OkStatus();
  std::vector<std::string> names;
  for (const auto& same : ByName()) {
    for (const Planner* planner : same) {
      if (planner->takes().supply == supply) names.emplace_back(planner->name());
    }
  }
  if (Find(name, Other(supply)) != nullptr) {
    return base::InvalidArgument("{}: '{}' makes plans {} only; {} there are: {}", field, name, KindName(Other(supply)),
                                 KindName(supply), fmt::join(names, ", "));
  }
  return base::InvalidArgument("{}: '{}' is unknown{} {} there are: {}", field, name,
                               base::DidYouMean(name, names).empty() ? "." : base::DidYouMean(name, names),
                               supply == Supply::kDevices ? "On the devices of a cluster" : "For stages of some units",
                               fmt::join(names, ", "));
}

Supply SupplyOf(const model::PlanRequest& request) { return request.on_devices() ? Supply::kDevices : Supply::kUnits; }

}  // namespace medley::sched
