// A planner that asks another process (proto/medley/planner/v1). The process is not trusted: its candidates are checked
// and scored here, and its lower bound is no proof. The service's own planner always computes a plan too, in the time
// that is left, at least 30 % of it.
//
//   the stream ended in order  the cheaper plan of both, the candidate if they cost the same
//   it was cut short           likewise, but the candidate only if it is cheaper; a note says why
//   no usable candidate        the own plan; a note says why
//
// The lower bound of the answer is the own planner's. Thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <memory>

#include "scheduler-service/planning/registry.h"
#include "scheduler-service/remote_planner/config.h"

namespace medley::sched {

// Answers the questions that `own` takes: of units with the cheapest plan by the closed form, of devices with the one
// with the fewest seconds of a step by the simulator. Reads the CA's certificates; the token is read for each call. The
// process need not run yet. `own` must outlive the planner. Errors: those of base::ReadFile.
absl::StatusOr<std::unique_ptr<Planner>> MakeRemotePlanner(const RemotePlannerConfig& config, const Planner& own);

// Adds the planners of `file`, for units and for devices. Their own planner is `auto` of the registry. Errors: those of
// LoadRemotePlanners and MakeRemotePlanner.
absl::Status AddRemotePlanners(const std::filesystem::path& file, bool insecure, Registry& registry);

}  // namespace medley::sched
