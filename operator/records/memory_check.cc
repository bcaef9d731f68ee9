#include "operator/records/memory_check.h"

#include <algorithm>
#include <map>

#include "common/base/quantity.h"
#include "common/base/status.h"
#include "common/model/execution_plan.h"
#include "common/model/job_spec.h"
#include "common/model/planning.h"
#include "common/model/profile.h"
#include "common/model/sample_bytes.h"
#include "common/program/compile.h"
#include "common/program/table_place.h"

namespace medley::ops {
namespace {

constexpr int64_t kMostCountedInstructions = 20'000;
// Smaller by more than the planner's tolerance.
constexpr double kBelow = 1 - 1e-6;

const ResourcePool* FindPool(const std::vector<PoolOffer>& offers, const std::string& name) {
  for (const PoolOffer& offer : offers) {
    if (offer.pool->name == name) return offer.pool;
  }
  return nullptr;
}

// The largest stage of the pool as the planner counts it: 0 where the plan names placements instead of stages.
double LargestStage(const model::ExecutionPlan& plan, const model::Profile& profile, const std::string& pool) {
  double most = 0;
  const bool inside = plan.servers && plan.servers->in_trainers;
  for (const model::Stage& stage : plan.stages) {
    const bool there = std::ranges::any_of(stage.groups, [&](const auto& group) { return group.pool == pool; });
    if (!there) continue;
    double bytes = 0, tables = 0;
    for (const model::OperationRange& range : stage.operations) {
      for (int i = range.first; i < range.end && i < std::ssize(profile.model.layers); ++i) {
        const model::Layer& layer = profile.model.layers[static_cast<size_t>(i)];
        const bool table = model::NeedsServers(layer, pool);
        if (inside || !table) bytes += layer.weight_bytes;
        if (table) tables += layer.weight_bytes * std::max(1.0, profile.state_factor - 1);
      }
    }
    most = std::max(most, bytes * profile.state_factor + program::RoomOf(stage.tables, tables));
  }
  return most;
}

std::string AdviceFor(const program::ProcessMemory& memory, const ResourcePool& pool, bool server) {
  const std::string raise = fmt::format("raise spec.unit.resources.memory of pool {}", pool.name);
  const std::string largest = memory.parts.empty() ? "" : memory.parts.front().name;
  if (largest.starts_with("rows in memory")) return raise + ", or lower spec.training.embeddings.memoryBudget";
  if (server)
    return raise +
           ", allow more units for parameter servers, keep seldom used rows on the disk "
           "(spec.training.embeddings.memoryBudget), or train with smaller tables (embeddingRows)";
  if (largest.starts_with("rows of ")) {
    return raise +
           ", allow more units (spec.limit, elasticity.maxUnits), so that parameter servers keep the rows, keep seldom "
           "used rows on the disk (spec.training.embeddings.memoryBudget), or train with smaller tables "
           "(embeddingRows)";
  }
  if (largest.find("parameters") != std::string::npos || largest == "tables") {
    return raise + ", or allow more units (spec.limit, elasticity.maxUnits), so that stages can divide the model";
  }
  return raise + ", or train with a smaller batch (spec.training.batchSize)";
}

// The largest stage of the pool, as a bound that this plan exceeds.
double BoundOf(const model::ExecutionPlan& plan, const model::Profile& profile, const program::ProcessOptions& options,
               const std::string& pool) {
  model::Profile counted = profile;
  program::CapTables(options.row_budget, profile.state_factor, counted.model);
  return LargestStage(plan, counted, pool) * kBelow;
}

std::optional<MemoryShortage> ShortageOfGpu(const program::ProcessMemory& needs, const ResourcePool& pool) {
  const double least = program::LeastGpuMemory(needs);
  if (pool.memory_bytes <= 0 || least <= pool.memory_bytes) return std::nullopt;
  double parameters = 0;  // with their versions
  for (const program::Holder& part : needs.parts) {
    if (part.name.find("parameters") != std::string::npos) parameters += part.bytes;
  }
  const bool divides = 2 * parameters > needs.bytes - needs.unsure;
  MemoryShortage shortage;
  shortage.reason = {
      "memory", pool.name, least, pool.memory_bytes,
      fmt::format(
          "a trainer of pool {} needs at least {} of GPU memory, its unit has {} (spec.memory). It is estimated "
          "to need {}; {}",
          pool.name, program::SizeText(least), program::SizeText(pool.memory_bytes), program::InWords(needs),
          divides ? "allow more units (spec.limit, elasticity.maxUnits), so that stages can divide the "
                    "model, or use a pool whose GPUs have more memory"
                  : "train with a smaller batch (spec.training.batchSize), or with more microBatches")};
  return shortage;
}

}  // namespace

program::ProcessOptions ProcessOptionsOf(const TrainingJob& job, const model::Profile& profile) {
  program::ProcessOptions options;
  options.tensors.samples = std::max(1, profile.profile_batch_size);
  options.tensors.state_factor = profile.state_factor;
  options.rows = static_cast<double>(profile.samples_per_epoch);
  const auto spec = model::ParseJobSpec(kube::Dump(job.spec));
  if (!spec.ok()) return options;  // the job was refused before
  options.torch = spec->model.imported();
  options.row_bytes = static_cast<double>(model::SampleBytes(spec->data.schema));
  options.most_row_bytes = static_cast<double>(model::kMostRowsInMemory);
  if (spec->training.embeddings) options.row_budget = spec->training.embeddings->memory_budget;
  return options;
}

double UnitMemory(const ResourcePool& pool) {
  const auto memory = pool.unit_resources.find("memory");
  if (memory == pool.unit_resources.end()) return 0;
  const auto bytes = base::ParseQuantity(memory->second);
  return bytes.ok() ? std::max(0.0, *bytes) : 0;
}

void LimitByUnitMemory(const TrainingJob& job, const model::Profile& profile, const std::vector<PoolOffer>& offers,
                       model::PlanRequest& request) {
  if (request.on_devices() || job.program) return;
  const program::ProcessOptions options = ProcessOptionsOf(job, profile);
  for (model::Resource& resource : request.resources) {
    const ResourcePool* pool = FindPool(offers, resource.name);
    // Parameters are in the GPU's memory, which the request has: FindShortage counts the rest.
    if (pool != nullptr && pool->cls == model::ResourceClass::kGpu && pool->memory_bytes > 0) continue;
    const double room = pool == nullptr ? 0 : program::RoomForTensors(UnitMemory(*pool), options);
    if (room > 0) resource.memory_bytes = resource.memory_bytes > 0 ? std::min(resource.memory_bytes, room) : room;
  }
  program::CapTables(options.row_budget, profile.state_factor, request.model);
  const ResourcePool* servers = FindPool(offers, request.server_type);
  const double share = program::TableShare(profile.model, options);
  if (servers == nullptr || share <= 0) return;
  const double room = program::RoomForRows(UnitMemory(*servers));
  if (room <= 0 || (options.row_budget > 0 && options.row_budget <= room)) return;
  request.server_memory_bytes = room / share;
}

std::optional<MemoryShortage> FindShortage(const TrainingJob& job, const model::Profile& profile,
                                           const std::vector<PoolOffer>& offers, const model::ExecutionPlan& plan) {
  if (job.program) return std::nullopt;  // nobody knows what it needs
  const auto program = program::Compile(plan, profile.model, kMostCountedInstructions);
  if (!program.ok()) return std::nullopt;
  program::ProcessOptions options = ProcessOptionsOf(job, profile);
  options.tensors.without_undo = plan.schedule.without_undo;
  std::vector<const ResourcePool*> pools;
  std::vector<bool> on_gpu;
  std::vector<model::Tables> tables;
  for (const program::Device& device : program->devices) {
    tables.push_back(model::TablesOf(plan, static_cast<int>(tables.size())));
    pools.push_back(FindPool(offers, device.pool));
    on_gpu.push_back(pools.back() != nullptr && pools.back()->cls == model::ResourceClass::kGpu);
  }
  const std::vector<program::ProcessMemory> needs = program::MemoryOfMembers(*program, profile.model, options, on_gpu);
  const std::vector<program::ProcessMemory> gpus =
      program::MemoryOfGpus(*program, profile.model, options, on_gpu, tables);
  for (size_t d = 0; d < needs.size(); ++d) {
    if (std::optional<MemoryShortage> shortage = on_gpu[d] ? ShortageOfGpu(gpus[d], *pools[d]) : std::nullopt) {
      shortage->bound = BoundOf(plan, profile, options, pools[d]->name);
      return shortage;
    }
    const double limit = pools[d] == nullptr ? 0 : UnitMemory(*pools[d]);
    const bool server = program->devices[d].server;
    const double least = program::LeastMemory(needs[d], options.torch && !server);
    if (limit <= 0 || least <= limit) continue;
    MemoryShortage shortage{.server = server};
    const std::string& pool = pools[d]->name;
    if (!server) shortage.bound = BoundOf(plan, profile, options, pool);
    shortage.reason = {
        "memory", pool, least, limit,
        fmt::format("a {} of pool {} needs at least {} of memory, its unit has {}. It is estimated to need {}; {}",
                    server ? "parameter server" : "trainer", pool, program::SizeText(least), program::SizeText(limit),
                    program::InWords(needs[d]), AdviceFor(needs[d], *pools[d], server))};
    return shortage;
  }
  return std::nullopt;
}

}  // namespace medley::ops
