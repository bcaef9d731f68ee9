// Converts what a planning request asks for, the objective and the place of rows, to and from the proto. Internal to
// common/model.
#pragma once

#include <absl/status/statusor.h>

#include "common/base/status.h"
#include "common/model/cluster.h"
#include "common/model/convert.h"
#include "common/model/planning.h"
#include "medley/scheduler/v1/scheduler.pb.h"

namespace medley::model {

inline absl::Status ObjectiveFromProto(const scheduler::v1::PlanRequest& in, PlanRequest& out) {
  switch (in.objective()) {
    case scheduler::v1::OBJECTIVE_UNSPECIFIED:
      out.objective = Objective::kCost;
      break;
    case scheduler::v1::OBJECTIVE_STEP_TIME:
      out.objective = Objective::kStepTime;
      break;
    case scheduler::v1::OBJECTIVE_COST_PER_HOUR:
      out.objective = Objective::kCostPerHour;
      break;
    case scheduler::v1::OBJECTIVE_TIME:
      out.objective = Objective::kTime;
      break;
    default:
      return base::InvalidArgument("objective: unknown value {}", static_cast<int>(in.objective()));
  }
  for (const plan::v1::Device& device : in.cluster().devices()) out.cluster.devices.push_back(FromProto(device));
  for (const scheduler::v1::ClusterLink& link : in.cluster().links()) {
    out.cluster.links.push_back({link.from(), link.to(), link.latency_seconds(), link.bytes_per_second()});
  }
  return absl::OkStatus();
}

inline scheduler::v1::Objective ObjectiveToProto(Objective objective) {
  switch (objective) {
    case Objective::kCost:
      return scheduler::v1::OBJECTIVE_UNSPECIFIED;
    case Objective::kStepTime:
      return scheduler::v1::OBJECTIVE_STEP_TIME;
    case Objective::kCostPerHour:
      return scheduler::v1::OBJECTIVE_COST_PER_HOUR;
    case Objective::kTime:
      return scheduler::v1::OBJECTIVE_TIME;
  }
  return scheduler::v1::OBJECTIVE_UNSPECIFIED;
}

// Nothing is said of servers, the only place that other callers know.
inline scheduler::v1::RowsPlace RowsPlaceToProto(RowsPlace place) {
  switch (place) {
    case RowsPlace::kServers:
      break;
    case RowsPlace::kTrainers:
      return scheduler::v1::ROWS_PLACE_TRAINERS;
    case RowsPlace::kDevice:
      return scheduler::v1::ROWS_PLACE_DEVICE;
    case RowsPlace::kAny:
      return scheduler::v1::ROWS_PLACE_ANY;
  }
  return scheduler::v1::ROWS_PLACE_UNSPECIFIED;
}

inline absl::StatusOr<RowsPlace> RowsPlaceFromProto(scheduler::v1::RowsPlace place) {
  switch (place) {
    case scheduler::v1::ROWS_PLACE_UNSPECIFIED:
    case scheduler::v1::ROWS_PLACE_SERVERS:
      return RowsPlace::kServers;
    case scheduler::v1::ROWS_PLACE_TRAINERS:
      return RowsPlace::kTrainers;
    case scheduler::v1::ROWS_PLACE_DEVICE:
      return RowsPlace::kDevice;
    case scheduler::v1::ROWS_PLACE_ANY:
      return RowsPlace::kAny;
    default:
      return base::InvalidArgument("rows: unknown value {}", static_cast<int>(place));
  }
}

}  // namespace medley::model
