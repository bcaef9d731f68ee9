#include "common/model/execution_plan.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/base/status.h"
#include "common/model/operation_range.h"
#include "common/model/placement.h"
#include "common/model/sync.h"
#include "common/model/synchronisation.h"

namespace medley::model {
namespace {

// Marks the operations in `seen`. Refuses an operation that is already marked.
absl::Status Claim(const std::vector<OperationRange>& ranges, int layers, const std::string& path,
                   std::vector<bool>& seen) {
  for (size_t r = 0; r < ranges.size(); ++r) {
    const std::string here = fmt::format("{}.operations[{}]", path, r);
    MEDLEY_RETURN_IF_ERROR(CheckRange(ranges[r], layers, here));
    for (int i = ranges[r].first; i < ranges[r].end; ++i) {
      if (seen[static_cast<size_t>(i)]) return base::InvalidArgument("{}: operation {} appears twice", here, i);
      seen[static_cast<size_t>(i)] = true;
    }
  }
  return absl::OkStatus();
}

absl::Status CheckGroups(const Stage& stage, const std::string& path) {
  if (stage.groups.empty()) return base::InvalidArgument("{}.groups: a stage needs at least one group", path);
  double share = 0;
  for (size_t g = 0; g < stage.groups.size(); ++g) {
    const Group& group = stage.groups[g];
    if (group.pool.empty()) return base::InvalidArgument("{}.groups[{}].pool: must not be empty", path, g);
    if (group.units <= 0) {
      return base::InvalidArgument("{}.groups[{}].units: must be positive, is {}", path, g, group.units);
    }
    if (!(group.share > 0 && group.share <= 1)) {
      return base::InvalidArgument("{}.groups[{}].share: must be in (0, 1], is {}", path, g, group.share);
    }
    share += group.share;
  }
  if (std::abs(share - 1) > 1e-6) {
    return base::InvalidArgument("{}.groups: the shares must sum to 1, they sum to {}", path, share);
  }
  return absl::OkStatus();
}

absl::Status CheckSyncs(const Stage& stage, int layers, const std::string& path, bool& needs_servers) {
  std::vector<bool> own(static_cast<size_t>(layers), false);
  for (const OperationRange& range : stage.operations) {
    for (int i = range.first; i < range.end; ++i) own[static_cast<size_t>(i)] = true;
  }
  std::vector<bool> seen(static_cast<size_t>(layers), false);
  for (size_t s = 0; s < stage.syncs.size(); ++s) {
    const std::string here = fmt::format("{}.syncs[{}]", path, s);
    MEDLEY_RETURN_IF_ERROR(Claim(stage.syncs[s].operations, layers, here, seen));
    const Sync& sync = stage.syncs[s].sync;
    if (sync.kind == SyncKind::kParameterServer) needs_servers = true;
  }
  for (int i = 0; i < layers; ++i) {
    if (seen[static_cast<size_t>(i)] && !own[static_cast<size_t>(i)]) {
      return base::InvalidArgument("{}.syncs: operation {} belongs to another stage", path, i);
    }
  }
  return absl::OkStatus();
}

std::string RangeNames(const OperationRange& range, const std::vector<std::string>& names) {
  const auto name = [&](int i) {
    return static_cast<size_t>(i) < names.size() ? names[static_cast<size_t>(i)] : std::to_string(i);
  };
  if (range.end - range.first == 1) return name(range.first);
  return name(range.first) + ".." + name(range.end - 1);
}

}  // namespace

int Stage::Units() const {
  return std::accumulate(groups.begin(), groups.end(), 0, [](int sum, const Group& g) { return sum + g.units; });
}

bool PullsRows(const Stage& stage) {
  return std::ranges::any_of(stage.syncs,
                             [](const OperationSync& entry) { return entry.sync.kind == SyncKind::kParameterServer; });
}

int TrainersThatPullRows(const ExecutionPlan& plan) {
  int trainers = 0;
  for (const Stage& stage : plan.stages) trainers += PullsRows(stage) ? stage.Units() : 0;
  return trainers;
}

namespace {

absl::Status CheckServers(const ExecutionPlan& plan) {
  const Servers& servers = *plan.servers;
  if (!servers.in_trainers) {
    if (servers.units > 0 && !servers.pool.empty()) return absl::OkStatus();
    return base::InvalidArgument("servers: needs a pool and positive units");
  }
  if (!plan.placements.empty()) {
    return base::InvalidArgument("servers.inTrainers: only trainers of stages have shards, the plan has placements");
  }
  if (!servers.pool.empty()) {
    return base::InvalidArgument("servers.pool: must be empty with inTrainers, is '{}'", servers.pool);
  }
  const int trainers = TrainersThatPullRows(plan);
  if (servers.units == trainers && trainers > 0) return absl::OkStatus();
  return base::InvalidArgument("servers.units: each of the {} trainers of stages with tables has a shard, not {}",
                               trainers, servers.units);
}

absl::Status CheckTables(const ExecutionPlan& plan, const Stage& stage, const std::string& path) {
  const Tables& tables = stage.tables;
  if (tables.cache_bytes < 0 || (tables.cache_bytes > 0) != (tables.place == TablePlace::kCache)) {
    return base::InvalidArgument("{}.tables.cacheBytes: must be positive with CACHE, and 0 else, is {}", path,
                                 tables.cache_bytes);
  }
  if (!tables.OnDevice()) return absl::OkStatus();
  if (stage.Units() != 1) {
    return base::InvalidArgument("{}.tables: the GPU of one trainer has them, but the stage has {} units", path,
                                 stage.Units());
  }
  if (!plan.servers) return absl::OkStatus();
  return base::InvalidArgument("{}.tables: a GPU has them, but the plan has shards of rows", path);
}

absl::Status CheckStages(const ExecutionPlan& plan, int layers, std::vector<bool>& seen) {
  bool needs_servers = false;
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    const std::string path = fmt::format("stages[{}]", s);
    MEDLEY_RETURN_IF_ERROR(Claim(plan.stages[s].operations, layers, path, seen));
    MEDLEY_RETURN_IF_ERROR(CheckGroups(plan.stages[s], path));
    MEDLEY_RETURN_IF_ERROR(CheckSyncs(plan.stages[s], layers, path, needs_servers));
    MEDLEY_RETURN_IF_ERROR(CheckTables(plan, plan.stages[s], path));
    const auto& ranges = plan.stages[s].operations;
    if (ranges.empty()) return base::InvalidArgument("{}.operations: a stage needs operations", path);
  }
  MEDLEY_RETURN_IF_ERROR(CheckStageSyncs(plan));
  if (needs_servers != plan.servers.has_value()) {
    return base::InvalidArgument("servers: {}", needs_servers ? "must be set, some operation is synchronised by servers"
                                                              : "must be unset, no operation is synchronised by them");
  }
  return absl::OkStatus();
}

absl::Status CheckPlacements(const ExecutionPlan& plan, int layers, std::vector<bool>& seen) {
  for (size_t p = 0; p < plan.placements.size(); ++p) {
    const std::string path = fmt::format("placements[{}]", p);
    MEDLEY_RETURN_IF_ERROR(Claim(plan.placements[p].operations, layers, path, seen));
    if (plan.placements[p].operations.empty()) {
      return base::InvalidArgument("{}.operations: a placement needs operations", path);
    }
  }
  return CheckPlaced(plan);
}

absl::Status CheckSchedule(const Schedule& schedule) {
  if (schedule.micro_batches < 1 || schedule.micro_batches > kMaxMicroBatches) {
    return base::InvalidArgument("schedule.microBatches: must be from 1 to {}, is {}", kMaxMicroBatches,
                                 schedule.micro_batches);
  }
  if (schedule.max_staleness < 0) return base::InvalidArgument("schedule.maxStaleness: must not be negative");
  if (schedule.bucket_bytes < 0) return base::InvalidArgument("schedule.bucketBytes: must not be negative");
  return absl::OkStatus();
}

}  // namespace

absl::Status Validate(const ExecutionPlan& plan, int layers) {
  if (plan.stages.empty() && plan.placements.empty()) {
    return base::InvalidArgument("stages: a plan needs at least one stage or placement");
  }
  if (!plan.stages.empty() && !(plan.placements.empty() && plan.devices.empty())) {
    return base::InvalidArgument("stages: a plan has either stages or devices and placements, not both");
  }
  MEDLEY_RETURN_IF_ERROR(CheckUnits(plan));
  std::vector<bool> seen(static_cast<size_t>(layers), false);
  MEDLEY_RETURN_IF_ERROR(plan.stages.empty() ? CheckPlacements(plan, layers, seen) : CheckStages(plan, layers, seen));
  const char* where = plan.stages.empty() ? "placement" : "stage";
  for (int i = 0; i < layers; ++i) {
    if (!seen[static_cast<size_t>(i)]) return base::InvalidArgument("{}s: operation {} is in no {}", where, i, where);
  }
  if (plan.servers) MEDLEY_RETURN_IF_ERROR(CheckServers(plan));
  MEDLEY_RETURN_IF_ERROR(CheckSchedule(plan.schedule));
  return CheckOrder(plan.order, layers);
}

Tables TablesOf(const ExecutionPlan& plan, int trainer) {
  int first = 0;
  for (const Stage& stage : plan.stages) {
    const int end = first + stage.Units();
    if (trainer >= first && trainer < end) return {stage.tables.place, stage.tables.cache_bytes, 0};
    first = end;
  }
  return {};
}

int MostStaleness(const ExecutionPlan& plan) {
  if (plan.schedule.kind != ScheduleKind::kAsync1F1B) return 0;
  const auto stages = static_cast<int>(std::max(plan.stages.size(), plan.placements.size()));
  const int micros = std::max(plan.schedule.micro_batches, 1), ahead = std::max(stages - 1, 0);
  const int most = (ahead + micros - 1) / micros;
  return plan.schedule.max_staleness > 0 ? std::min(most, plan.schedule.max_staleness) : most;
}

std::string Summary(const ExecutionPlan& plan, const std::vector<std::string>& layer_names) {
  std::string out;
  for (const Stage& stage : plan.stages) {
    if (!out.empty()) out += " | ";
    for (size_t r = 0; r < stage.operations.size(); ++r) {
      if (r > 0) out += ',';
      out += RangeNames(stage.operations[r], layer_names);
    }
    out += '@';
    for (size_t g = 0; g < stage.groups.size(); ++g) {
      if (g > 0) out += '+';
      out += fmt::format("{}x{}", stage.groups[g].units, stage.groups[g].pool);
    }
    if (stage.tables.OnDevice()) {
      out += stage.tables.place == TablePlace::kDevice ? " with tables on its GPU" : " with rows cached on its GPU";
    }
  }
  if (!plan.placements.empty()) {
    std::string pools;
    for (const auto& [pool, units] : TrainersByPool(plan)) {
      pools += fmt::format("{}{}x{}", pools.empty() ? "" : "+", units, pool);
    }
    out += fmt::format("{} placement{}@{}", plan.placements.size(), plan.placements.size() == 1 ? "" : "s", pools);
  }
  if (!plan.servers) return out;
  const char* const several = plan.servers->units == 1 ? "" : "s";
  if (plan.servers->in_trainers) {
    out += fmt::format(" + rows in {} trainer{}", plan.servers->units, several);
  } else {
    out += fmt::format(" + {} server{}@{}", plan.servers->units, several, plan.servers->pool);
  }
  return out;
}

}  // namespace medley::model
