// medley plan --planners: the planners, what they take, and their options.
#pragma once

#include <absl/status/statusor.h>

#include <string>

namespace medley::scheduler::v1 {
class ListPlannersResponse;
}

namespace medley::cli {

// Those of this program and, where medley-planner is beside it, of that one. Errors: those of reading its answer.
absl::StatusOr<scheduler::v1::ListPlannersResponse> ListPlanners();

// For people: each name once, its goals and its options below it. Pure.
std::string PlannersText(const scheduler::v1::ListPlannersResponse& planners);

}  // namespace medley::cli
