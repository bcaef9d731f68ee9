#include <fmt/ranges.h>

#include <algorithm>

#include "common/base/closest.h"
#include "common/base/status.h"
#include "scheduler-service/planner/planner.h"

namespace medley::sched {
namespace {

void AddOnce(std::string_view name, std::vector<std::string>& names) {
  if (std::ranges::find(names, name) == names.end()) names.emplace_back(name);
}

std::string_view KindName(bool on_devices) {
  return on_devices ? "on the devices of a cluster" : "with stages of some units";
}

}  // namespace

void Registry::Add(std::unique_ptr<Planner> planner) {
  MEDLEY_CHECK(Find(planner->name()) == nullptr, "two planners have the same name");
  AddOnce(planner->name(), names_);
  planners_.push_back(std::move(planner));
}

void Registry::Add(std::unique_ptr<StepTimePlanner> planner) {
  AddOnce(planner->name(), names_);
  step_time_.Add(std::move(planner));
}

std::vector<NamedPlanner> Registry::List() const {
  std::vector<NamedPlanner> list;
  for (const std::string& name : names_) list.push_back({name, Find(name), step_time_.Find(name)});
  return list;
}

absl::Status Registry::CheckName(std::string_view name, bool on_devices, std::string_view field) const {
  if (on_devices ? step_time_.Find(name) != nullptr : Find(name) != nullptr) return absl::OkStatus();
  std::vector<std::string> names;
  for (const NamedPlanner& planner : List()) {
    if (on_devices ? planner.step_time != nullptr : planner.cost != nullptr) names.emplace_back(planner.name);
  }
  if (std::ranges::find(names_, name) != names_.end()) {
    return base::InvalidArgument("{}: '{}' makes plans {} only; {} there are: {}", field, name, KindName(!on_devices),
                                 KindName(on_devices), fmt::join(names, ", "));
  }
  return base::InvalidArgument("{}: '{}' is unknown{} {} there are: {}", field, name,
                               base::DidYouMean(name, names).empty() ? "." : base::DidYouMean(name, names),
                               on_devices ? "On the devices of a cluster" : "For stages of some units",
                               fmt::join(names, ", "));
}

const Planner* Registry::Find(std::string_view name) const {
  for (const auto& planner : planners_) {
    if (planner->name() == name) return planner.get();
  }
  return nullptr;
}

}  // namespace medley::sched
