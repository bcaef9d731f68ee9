// Decodes a planning request: JSON or YAML text, or the binary format if the first byte is 0. Valid small requests are
// planned, and the plan must meet the constraints.
#include <google/protobuf/stubs/logging.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/model/cluster.h"
#include "common/model/convert.h"
#include "common/model/plan_result.h"
#include "common/model/planning.h"
#include "common/model/text.h"
#include "common/rpc/decode.h"
#include "medley/scheduler/v1/scheduler.pb.h"
#include "scheduler-service/cost/problem.h"
#include "scheduler-service/planner/builtin.h"
#include "scheduler-service/planner/plan.h"

namespace medley::sched {
namespace {

bool Small(const model::PlanRequest& request) {
  int64_t units = 0;
  for (const model::Resource& r : request.resources) units += r.limit;
  return request.model.layers.size() <= 8 && request.resources.size() <= 4 && units <= 2000;
}

bool Read(std::string_view input, scheduler::v1::PlanRequest& message) {
  if (input.front() == '\0') return rpc::Decode(input.substr(1), message).ok();
  if (!model::ParseText(input, message).ok()) return false;
  scheduler::v1::PlanRequest again;
  MEDLEY_CHECK(model::ParseText(model::ToJson(message), again).ok(), "JSON that was written is not read");
  return true;
}

// The goal step time: the plan is one for the request's devices, and takes some time.
void PlanStepTime(model::PlanRequest request) {
  if (request.cluster.devices.size() > 8) return;
  const model::PlannerOptions asked = request.planner;
  request.planner = {};
  request.planner.schedule = asked.schedule;
  request.planner.max_staleness = asked.max_staleness;
  request.planner.sync.hierarchy = asked.sync.hierarchy;
  request.planner.name = "auto";
  request.planner.time_budget_seconds = 0.05;
  const base::SystemClock clock;
  const auto result = MakePlan(request, {}, BuiltinPlanners(), clock, {});
  if (!result.ok() || !result->step_time) return;
  MEDLEY_CHECK(result->step_time->seconds >= 0 && std::isfinite(result->step_time->seconds), "a step without time");
  MEDLEY_CHECK(model::Validate(*result->execution_plan, static_cast<int>(request.model.layers.size())).ok(),
               "an invalid execution plan");
}

void FuzzPlanRequest(std::string_view input) {
  scheduler::v1::PlanRequest message;
  if (input.empty() || !Read(input, message)) return;
  auto request = model::FromProto(message);
  if (!request.ok()) return;
  if (!model::Validate(*request).ok() || !Small(*request)) return;
  if (request->objective == model::Objective::kStepTime) {
    PlanStepTime(*std::move(request));
    return;
  }
  request->planner = {};
  request->planner.time_budget_seconds = 0.05;
  const base::SystemClock clock;
  const auto result = MakePlan(*request, {}, BuiltinPlanners(), clock, {});
  if (!result.ok() || !result->plan) return;
  const auto problem = Problem::Compile(*request);
  MEDLEY_CHECK(problem.ok(), "a request that was planned does not compile");
  MEDLEY_CHECK(result->plan->throughput > 0, "a plan without throughput");
  MEDLEY_CHECK(result->plan->throughput >= problem->RequiredThroughput(), "a plan that is too slow");
}

}  // namespace
}  // namespace medley::sched

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  google::protobuf::SetLogHandler(nullptr);  // otherwise the log is full of protobuf's messages
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  medley::sched::FuzzPlanRequest({reinterpret_cast<const char*>(data), size});
  return 0;
}
