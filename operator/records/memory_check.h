// Whether the processes of a plan fit into the memory of their pools' units (spec.unit.resources.memory), and what they
// have on GPUs into that of these (spec.memory).
//
// Pure. Nothing is refused that can run (common/program/process_memory.h). A unit without memory has no limit, and a
// plan that is too large to count its memory beside others is not checked.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/model/forward.h"
#include "common/model/reason.h"
#include "common/program/process_memory.h"
#include "operator/api/training_job.h"
#include "operator/records/plan_request.h"

namespace medley::ops {

// For a job whose layers were measured.
program::ProcessOptions ProcessOptionsOf(const TrainingJob& job, const model::Profile& profile);

// For a unit, in bytes; 0: it has no limit.
double UnitMemory(const ResourcePool& pool);

// Lowers Resource::memory_bytes to what a unit has left beside a trainer's program and data, unless it is the memory of
// a GPU, and fills in server_memory_bytes where the profile says how many rows of tables the data use. With
// Objective::kStepTime nothing: those planners count activations as well, which for models from PyTorch may be too
// many.
void LimitByUnitMemory(const TrainingJob& job, const model::Profile& profile, const std::vector<PoolOffer>& offers,
                       model::PlanRequest& request);

struct MemoryShortage {
  model::Reason reason;  // constraint "memory"
  // Below what the planner counts for this plan on the pool: a question with it as Resource::memory_bytes, or for
  // servers as server_memory_bytes, has another answer. 0: no other plan would help.
  double bound = 0;
  bool server = false;
};

// The first process of the plan that cannot fit.
std::optional<MemoryShortage> FindShortage(const TrainingJob& job, const model::Profile& profile,
                                           const std::vector<PoolOffer>& offers, const model::ExecutionPlan& plan);

}  // namespace medley::ops
