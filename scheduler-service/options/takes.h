// Which requests a planner takes: for the core, which asks only planners that fit, and for lists of planners.
#pragma once

namespace medley::sched {

// What the plans of a question are made of.
enum class Supply {
  kUnits,    // stages of some units of resource types, which a plan buys
  kDevices,  // the devices that a cluster has (PlanRequest::on_devices)
};

struct Takes {
  Supply supply = Supply::kUnits;
  bool objectives = false;     // of units: also objectives other than the least USD; of devices every planner does
  bool graphs = false;         // plans branches of a model as branches; false: takes the layers as a chain
  bool tables = false;         // models with layers on parameter servers
  bool asynchronous = true;    // ScheduleKind::kAsync1F1B
  int most_devices = 0;        // of the request's cluster; 0: as many as a request may have
  bool other_options = false;  // options that it does not list, which a process of its own checks
};

}  // namespace medley::sched
