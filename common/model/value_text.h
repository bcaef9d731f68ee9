// Requests, answers, plans and profiles as text, for callers that do not handle their protos. Pure and thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>

#include "common/model/forward.h"

namespace medley::model {

// Read JSON or YAML in the proto3 mapping. Errors: those of ParseText (text.h) and of FromProto (convert.h).
absl::StatusOr<PlanRequest> ParsePlanRequest(std::string_view text);
absl::StatusOr<PlanResult> ParsePlanResult(std::string_view text);
absl::StatusOr<ExecutionPlan> ParseExecutionPlan(std::string_view text);
absl::StatusOr<Profile> ParseProfile(std::string_view text);

// The proto3 JSON with every scalar field, zeros included, in one line.
std::string PlanRequestJson(const PlanRequest& request);
std::string PlanResultJson(const PlanResult& result);

}  // namespace medley::model
