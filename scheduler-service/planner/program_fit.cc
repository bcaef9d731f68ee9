#include "scheduler-service/planner/program_fit.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "common/model/execution_plan.h"
#include "common/model/model.h"
#include "common/model/planning.h"
#include "common/model/resource.h"
#include "common/program/compile.h"
#include "common/program/memory.h"

namespace medley::sched {
namespace {

constexpr int64_t kMostInstructions = 20'000;

std::vector<double> UnitMemory(const program::Program& program, const model::PlanRequest& request) {
  std::map<std::string, double> by_pool;
  for (const model::Resource& resource : request.resources) by_pool[resource.name] = resource.memory_bytes;
  std::vector<double> bytes;
  for (const program::Device& device : program.devices) {
    const double servers = device.host >= 0 ? 0 : request.server_memory_bytes;  // a trainer's shard is counted there
    bytes.push_back(device.server ? servers : by_pool[device.pool]);
  }
  return bytes;
}

// Servers keep no versions that count.
bool HasLimit(const model::ExecutionPlan& plan, const model::PlanRequest& request) {
  for (const model::Resource& resource : request.resources) {
    if (resource.memory_bytes <= 0) continue;
    for (const model::Stage& stage : plan.stages) {
      for (const model::Group& group : stage.groups) {
        if (group.pool == resource.name) return true;
      }
    }
  }
  return false;
}

}  // namespace

absl::Status CheckProgram(const model::ExecutionPlan& plan, const model::PlanRequest& request) {
  const absl::Status status = program::Compile(plan, request.model, kMostInstructions).status();
  return absl::IsUnimplemented(status) ? status : absl::OkStatus();
}

bool FitsOnlyWithoutUndo(const model::ExecutionPlan& plan, const model::PlanRequest& request) {
  if (request.planner.sync.mode != model::SyncMode::kFull || !HasLimit(plan, request)) return false;
  const auto program = program::Compile(plan, request.model, kMostInstructions);
  if (!program.ok()) return false;
  const std::vector<double> limits = UnitMemory(*program, request);
  program::MemoryOptions options{
      .samples = static_cast<int>(std::clamp(request.training.profile_batch_size, 1.0, 1e9)),
      .state_factor = request.training.state_factor,
  };
  if (program::CheckMemory(*program, request.model, limits, options).ok()) return false;
  options.without_undo = true;
  return program::CheckMemory(*program, request.model, limits, options).ok();
}

}  // namespace medley::sched
