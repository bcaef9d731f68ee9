// Plans of the program medley-planner, which has planners that are not linked into `medley`: those of reproductions/.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <string>

#include "common/model/forward.h"

namespace medley::cli {

// The folder of the running program; empty where the system does not say.
std::filesystem::path OwnFolder();

// Whether medley-planner is in the folder.
bool HasPlannerProgram(const std::filesystem::path& folder);

// The planners of `folder`/medley-planner, those of this program among them, as a ListPlannersResponse in JSON. Errors:
// NotFound where the program is not in the folder; Internal.
absl::StatusOr<std::string> ListOfPlannerProgram(const std::filesystem::path& folder);

// Starts `folder`/medley-planner for one answer, and waits for it: it ends within the request's time budget.
// Thread-safe. Errors: InvalidArgument where the program is not in the folder or fails (it has printed why), and those
// of reading and writing files.
absl::StatusOr<model::PlanResult> AnswerOfPlannerProgram(const std::filesystem::path& folder,
                                                         const model::PlanRequest& request);

}  // namespace medley::cli
