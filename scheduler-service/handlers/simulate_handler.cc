// The handler that times a plan.
#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "common/base/status.h"
#include "common/model/convert.h"
#include "common/model/execution_plan.h"
#include "common/model/planning.h"
#include "common/model/profile.h"
#include "common/program/memory.h"
#include "common/program/text.h"
#include "scheduler-service/handlers/answer.h"
#include "scheduler-service/handlers/field_path.h"
#include "scheduler-service/handlers/handlers.h"
#include "scheduler-service/handlers/prepared.h"
#include "scheduler-service/simulate/plan_simulation.h"
#include "scheduler-service/simulate/timeline.h"

namespace medley::sched {
namespace {

namespace pb = scheduler::v1;

// So that a request takes seconds and tens of MiB at most. `medley simulate` has no such limits.
constexpr int64_t kMaxStepInstructions = 100'000;
constexpr int64_t kMaxSpans = 20'000;
constexpr int kMaxSteps = 100, kDefaultSteps = 10;

absl::Status CheckRange(const char* field, int64_t value, int64_t most) {
  if (value >= 0 && value <= most) return absl::OkStatus();
  return base::InvalidArgument("{}: {} is not within 0 to {}", field, value, most);
}

}  // namespace

struct Handlers::ToSimulate {
  model::Profile profile;
  std::map<std::string, double> unit_memory;  // bytes by resource type; 0: unlimited
  double server_memory = 0;
  std::optional<ClusterLinks> links;  // with OBJECTIVE_STEP_TIME
};

absl::StatusOr<Handlers::ToSimulate> Handlers::PrepareSimulation(const pb::SimulateRequest& in, Call& call) const {
  ToSimulate out;
  if (!in.has_request()) {
    auto profile = model::FromProto(in.profile());
    if (!profile.ok()) return WithinField("profile", profile.status());
    if (profile->profile_batch_size < 1) return base::InvalidArgument("profile.profileBatchSize: must be positive");
    out.profile = *std::move(profile);
    return out;
  }
  if (in.has_profile()) return base::InvalidArgument("profile: must not be set together with request");
  auto prepared = Prepare(in.request(), call);
  if (!prepared.ok()) return WithinField("request", prepared.status());
  MEDLEY_RETURN_IF_ERROR(WithinField("request", model::Validate(prepared->request)));
  call.input_version.catalog_revision = prepared->origin.catalog_revision;
  const model::PlanRequest& request = prepared->request;
  out.profile = model::ProfileOf(request);
  if (out.profile.profile_batch_size < 1) {
    return base::InvalidArgument("request.training.profileBatchSize: must be at least 1 to be simulated");
  }
  if (request.on_devices()) {
    MEDLEY_ASSIGN_OR_RETURN(out.links, ClusterLinks::Make(request.cluster));
  }
  for (const model::Resource& resource : request.resources) out.unit_memory[resource.name] = resource.memory_bytes;
  out.server_memory = request.server_memory_bytes;
  return out;
}

absl::Status Handlers::Simulate(const pb::SimulateRequest& in, Call& call, pb::SimulateResponse& out) {
  return Answer("Simulate", in, call, out, [&](pb::SimulateResponse& o, base::SteadyTime) -> absl::Status {
    MEDLEY_RETURN_IF_ERROR(CheckRange("samples", in.samples(), 1 << 30));
    MEDLEY_RETURN_IF_ERROR(CheckRange("steps", in.steps(), kMaxSteps));
    const auto plan = model::FromProto(in.plan());
    if (!plan.ok()) return WithinField("plan", plan.status());
    MEDLEY_ASSIGN_OR_RETURN(const ToSimulate prepared, PrepareSimulation(in, call));
    const model::Profile& profile = prepared.profile;
    PlanSimulationOptions options{.samples = in.samples(), .steps = in.steps() > 0 ? in.steps() : kDefaultSteps};
    options.rank = in.rank_order();
    options.max_spans = in.timeline() ? kMaxSpans : 0;
    options.max_instructions = kMaxStepInstructions;
    options.stop = call.stop;
    std::optional<DeviceLinks> links;
    if (prepared.links) options.links = &links.emplace(prepared.links->View());
    const auto result = SimulatePlan(*plan, profile, options);
    // Because of the plan, not of the service's load: it is no use to try again.
    if (absl::IsResourceExhausted(result.status())) {
      return base::InvalidArgument("plan: {}", base::Message(result.status()));
    }
    if (!result.ok()) return WithinField("plan", result.status());
    const PlanSimulation& simulated = *result;
    o.set_seconds_per_step(simulated.simulation.seconds_per_step);
    o.set_throughput(simulated.throughput());
    o.set_samples(simulated.samples);
    o.set_program(program::Hash(simulated.program));
    o.set_instructions(static_cast<int64_t>(simulated.program.instructions.size()));
    std::vector<double> limits;
    for (const program::Device& device : simulated.program.devices) {
      const auto found = prepared.unit_memory.find(device.pool);
      limits.push_back(device.host >= 0                      ? 0
                       : device.server                       ? prepared.server_memory
                       : found == prepared.unit_memory.end() ? 0
                                                             : found->second);
    }
    o.set_out_of_memory(base::Message(program::CheckMemory(simulated.program, simulated.memory, limits)));
    for (size_t d = 0; d < simulated.program.devices.size(); ++d) {
      pb::SimulatedDevice& device = *o.add_devices();
      device.set_id(simulated.program.devices[d].id);
      device.set_pool(simulated.program.devices[d].pool);
      device.set_computes(simulated.computes(d));
      device.set_memory_bytes(simulated.memory[d].peak);
      if (!simulated.memory[d].holders.empty()) device.set_largest(simulated.memory[d].holders.front().name);
      device.set_memory_limit_bytes(limits[d]);
    }
    model::ExecutionPlan ordered;
    ordered.order = simulated.order;
    plan::v1::ExecutionPlan order;
    model::ToProto(ordered, order);
    o.mutable_order()->Swap(order.mutable_order());
    if (in.timeline()) {
      std::vector<std::string> names;
      for (const model::Layer& layer : profile.model.layers) names.push_back(layer.name);
      o.set_trace(ChromeTrace(simulated.program, simulated.simulation, names));
      o.set_svg(TimelineSvg(simulated.program, simulated.simulation, names));
      o.set_timeline_cut(simulated.simulation.spans_left_out);
    }
    call.reproducible = true;
    return absl::OkStatus();
  });
}

}  // namespace medley::sched
