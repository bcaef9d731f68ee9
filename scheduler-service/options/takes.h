// Which requests a planner takes, for lists of planners.
#pragma once

namespace medley::sched {

struct Takes {
  bool graphs = false;         // plans branches of a model as branches; false: takes the layers as a chain
  bool tables = false;         // models with layers on parameter servers
  bool asynchronous = true;    // ScheduleKind::kAsync1F1B
  int most_devices = 0;        // of the request's cluster; 0: as many as a request may have
  bool other_options = false;  // options that it does not list, which a process of its own checks
};

}  // namespace medley::sched
