#include "common/model/value_text.h"

#include "common/base/status.h"
#include "common/model/convert.h"
#include "common/model/execution_plan.h"
#include "common/model/plan_result.h"
#include "common/model/planning.h"
#include "common/model/profile.h"
#include "common/model/text.h"
#include "medley/plan/v1/plan.pb.h"
#include "medley/profile/v1/profile.pb.h"
#include "medley/scheduler/v1/scheduler.pb.h"

namespace medley::model {
namespace {

template <typename Proto>
auto ParseValue(std::string_view text) -> decltype(FromProto(Proto())) {
  Proto message;
  MEDLEY_RETURN_IF_ERROR(ParseText(text, message));
  return FromProto(message);
}

template <typename Proto, typename Value>
std::string ValueJson(const Value& value) {
  Proto message;
  ToProto(value, message);
  return ToJson(message);
}

}  // namespace

absl::StatusOr<PlanRequest> ParsePlanRequest(std::string_view text) {
  return ParseValue<scheduler::v1::PlanRequest>(text);
}
absl::StatusOr<PlanResult> ParsePlanResult(std::string_view text) {
  return ParseValue<scheduler::v1::PlanResponse>(text);
}
absl::StatusOr<ExecutionPlan> ParseExecutionPlan(std::string_view text) {
  return ParseValue<plan::v1::ExecutionPlan>(text);
}
absl::StatusOr<Profile> ParseProfile(std::string_view text) { return ParseValue<profile::v1::Profile>(text); }

std::string PlanRequestJson(const PlanRequest& request) { return ValueJson<scheduler::v1::PlanRequest>(request); }
std::string PlanResultJson(const PlanResult& result) { return ValueJson<scheduler::v1::PlanResponse>(result); }

}  // namespace medley::model
