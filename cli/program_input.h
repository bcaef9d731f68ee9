// What the commands `program` and `simulate` read: an execution plan and the profile of its model.
#pragma once

#include <absl/status/statusor.h>

#include <optional>
#include <string>
#include <vector>

#include "cli/plan_input.h"
#include "common/model/execution_plan.h"
#include "common/model/profile.h"
#include "scheduler-service/simulate/from_profile.h"

namespace medley::cli {

struct ProgramInput {
  model::ExecutionPlan plan;
  model::Profile profile;
  std::vector<std::string> names;            // of the model's layers
  std::optional<sched::ClusterLinks> links;  // of what was planned for the fastest step
};

// Reads flags.file: an execution plan, the answer of the scheduling service or of `medley plan -o yaml`, each with the
// profile of --profile; or a planning request or job file, which is planned. Errors name the file and the field;
// FailedPrecondition: no plan is feasible.
absl::StatusOr<ProgramInput> ReadProgramInput(const PlanFlags& flags);

// The plan that was made, with what it was made for. FailedPrecondition: none is feasible.
absl::StatusOr<ProgramInput> InputOf(const Planned& planned);

}  // namespace medley::cli
