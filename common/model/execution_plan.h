// The execution plan as a domain value. proto/medley/plan/v1/plan.proto documents the fields.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/model/allreduce_algorithm.h"
#include "common/model/device.h"
#include "common/model/operation_range.h"
#include "common/model/order_entry.h"
#include "common/model/sync.h"
#include "common/model/synchronisation.h"
#include "common/model/table_place.h"

namespace medley::model {

struct Group {
  std::string pool;
  int units = 0;
  double share = 1;
  bool operator==(const Group&) const = default;
};

struct Stage {
  std::vector<OperationRange> operations;
  std::vector<Group> groups;
  std::vector<OperationSync> syncs;
  double priority = 0;
  Tables tables = {};
  int Units() const;  // of all groups
  bool operator==(const Stage&) const = default;
};

struct Replica {
  std::string device;
  double share = 1;
  bool operator==(const Replica&) const = default;
};

struct Placement {
  std::vector<OperationRange> operations;
  std::vector<Replica> replicas;
  Sync sync;
  bool operator==(const Placement&) const = default;
};

struct Servers {
  std::string pool;
  int units = 0;
  bool in_trainers = false;  // then `pool` is empty: no unit is bought
  bool operator==(const Servers&) const = default;
};

struct Schedule {
  ScheduleKind kind = ScheduleKind::kSync1F1B;
  int micro_batches = 1;
  int max_staleness = 0;
  int64_t bucket_bytes = 0;
  bool without_undo = false;
  bool overlap_next_step = false;
  bool operator==(const Schedule&) const = default;
};

struct TimelineSpan {
  std::string name;
  int stage = 0;
  double start_seconds = 0;
  double seconds = 0;
  bool operator==(const TimelineSpan&) const = default;
};

struct Estimate {
  double throughput = 0;
  double usd_per_hour = 0;
  double usd_total = 0;
  double seconds_total = 0;
  std::vector<TimelineSpan> timeline;
  double simulated_throughput = 0;  // samples/s; 0: not simulated
  bool operator==(const Estimate&) const = default;
};

struct Provenance {
  std::string planner;
  uint64_t seed = 0;
  int64_t catalog_revision = 0;
  std::string price_time;  // RFC 3339 or empty
  std::string profile_id;
  double lower_bound_usd = 0;
  double gap = 0;
  bool operator==(const Provenance&) const = default;
};

struct ExecutionPlan {
  std::string job_uid;
  int64_t generation = 0;
  std::vector<Stage> stages;
  std::vector<Device> devices;
  std::vector<Placement> placements;
  std::vector<AlgorithmRule> algorithms;
  std::optional<Servers> servers;
  Schedule schedule;
  std::vector<OrderEntry> order;
  Estimate estimate;
  Provenance provenance;
  bool operator==(const ExecutionPlan&) const = default;
};

// Checks that the stages, or the placements, cover operations [0, layers) exactly once each, units are positive, the
// shares of a stage or placement sum to 1, devices exist, levels of a hierarchy divide the replicas, and `servers` is
// set exactly when some operation of a stage needs them. Errors: InvalidArgument naming the field.
absl::Status Validate(const ExecutionPlan& plan, int layers);

// Whether the stage has operations whose rows are in shards. With Servers::in_trainers each of its trainers has one.
bool PullsRows(const Stage& stage);
// The trainers of such stages.
int TrainersThatPullRows(const ExecutionPlan& plan);

// Where the plan has the tables of the stage of this trainer, counted over all stages. Without what it expects of a
// cache, which is nothing that a trainer could do.
Tables TablesOf(const ExecutionPlan& plan, int trainer);

// The most steps by which a gradient of a plan with stages is late: those that the first stage is ahead of the last. 0
// unless the schedule is asynchronous.
int MostStaleness(const ExecutionPlan& plan);

// One line: "emb@4xcpu-spot | fc1..loss@1xv100-spot + 2 servers@cpu-spot", "emb..loss@2xcpu-spot + rows in 2 trainers",
// "emb..loss@1xh100 with tables on its GPU", or "7 placements@2xcpu-spot+1xv100-spot".
// Without names it prints operation indices.
std::string Summary(const ExecutionPlan& plan, const std::vector<std::string>& layer_names);

}  // namespace medley::model
