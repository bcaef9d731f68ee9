#include "common/base/status.h"
#include "common/model/convert.h"
#include "common/model/convert_enums.h"
#include "common/model/convert_tables.h"
#include "common/model/device.h"
#include "common/model/execution_plan.h"
#include "common/model/operation_range.h"
#include "common/model/order_entry.h"
#include "common/model/sync.h"
#include "medley/plan/v1/plan.pb.h"

namespace medley::model {
namespace {

namespace plan_pb = plan::v1;

plan_pb::SyncKind KindToProto(SyncKind kind) {
  switch (kind) {
    case SyncKind::kNone:
      return plan_pb::SYNC_KIND_NONE;
    case SyncKind::kAllreduce:
      return plan_pb::SYNC_KIND_ALLREDUCE;
    case SyncKind::kParameterServer:
      return plan_pb::SYNC_KIND_PARAMETER_SERVER;
  }
  return plan_pb::SYNC_KIND_UNSPECIFIED;
}

absl::StatusOr<SyncKind> KindFromProto(plan_pb::SyncKind kind, const std::string& path) {
  switch (kind) {
    case plan_pb::SYNC_KIND_UNSPECIFIED:
    case plan_pb::SYNC_KIND_NONE:
      return SyncKind::kNone;
    case plan_pb::SYNC_KIND_ALLREDUCE:
      return SyncKind::kAllreduce;
    case plan_pb::SYNC_KIND_PARAMETER_SERVER:
      return SyncKind::kParameterServer;
    default:
      return base::InvalidArgument("{}.kind: unknown value {}", path, static_cast<int>(kind));
  }
}

void RangesToProto(const std::vector<OperationRange>& ranges,
                   google::protobuf::RepeatedPtrField<plan_pb::OperationRange>& out) {
  for (const OperationRange& range : ranges) {
    plan_pb::OperationRange& to = *out.Add();
    to.set_first(range.first);
    to.set_end(range.end);
  }
}

std::vector<OperationRange> RangesFromProto(const google::protobuf::RepeatedPtrField<plan_pb::OperationRange>& in) {
  std::vector<OperationRange> ranges;
  for (const plan_pb::OperationRange& range : in) ranges.push_back({range.first(), range.end()});
  return ranges;
}

void SyncToProto(const Sync& sync, plan_pb::Sync& out) {
  out.set_kind(KindToProto(sync.kind));
  out.set_algorithm(AlgorithmToProto(sync.algorithm));
  out.set_mode(ToProto(sync.mode));
  out.set_fraction(sync.fraction);
  out.set_target_ratio(sync.target_ratio);
  for (const HierarchyLevel& level : sync.hierarchy) {
    plan_pb::HierarchyLevel& to = *out.add_hierarchy();
    to.set_algorithm(AlgorithmToProto(level.algorithm));
    for (const std::vector<std::string>& group : level.groups) {
      plan_pb::DeviceGroup& devices = *to.add_groups();
      for (const std::string& device : group) devices.add_devices(device);
    }
  }
  out.set_root(sync.root);
  if (sync.detector == AnomalyDetector::kOff) return;
  out.mutable_anomaly()->set_detector(ToProto(sync.detector));
  out.mutable_anomaly()->set_window(sync.anomaly_window);
  out.mutable_anomaly()->set_threshold(sync.anomaly_threshold);
}

absl::StatusOr<Sync> SyncFromProto(const plan_pb::Sync& in, const std::string& path) {
  Sync sync;
  MEDLEY_ASSIGN_OR_RETURN(sync.kind, KindFromProto(in.kind(), path));
  MEDLEY_ASSIGN_OR_RETURN(sync.algorithm, AlgorithmFromProto(in.algorithm(), path));
  MEDLEY_ASSIGN_OR_RETURN(sync.mode, FromProto(in.mode(), path + ".mode"));
  sync.fraction = in.fraction() == 0 ? 1 : in.fraction();
  sync.target_ratio = in.target_ratio();
  for (const plan_pb::HierarchyLevel& level : in.hierarchy()) {
    HierarchyLevel& to = sync.hierarchy.emplace_back();
    MEDLEY_ASSIGN_OR_RETURN(to.algorithm, AlgorithmFromProto(level.algorithm(), path + ".hierarchy"));
    for (const plan_pb::DeviceGroup& group : level.groups()) {
      to.groups.emplace_back(group.devices().begin(), group.devices().end());
    }
  }
  sync.root = in.root();
  MEDLEY_ASSIGN_OR_RETURN(sync.detector, FromProto(in.anomaly().detector(), path + ".anomaly.detector"));
  sync.anomaly_window = in.anomaly().window();
  sync.anomaly_threshold = in.anomaly().threshold();
  return sync;
}

void StageToProto(const Stage& stage, plan_pb::Stage& out) {
  RangesToProto(stage.operations, *out.mutable_operations());
  for (const Group& group : stage.groups) {
    plan_pb::Group& to = *out.add_groups();
    to.set_pool(group.pool);
    to.set_units(group.units);
    to.set_share(group.share);
  }
  for (const OperationSync& sync : stage.syncs) {
    plan_pb::OperationSync& to = *out.add_syncs();
    RangesToProto(sync.operations, *to.mutable_operations());
    SyncToProto(sync.sync, *to.mutable_sync());
  }
  out.set_priority(stage.priority);
  TablesToProto(stage.tables, out);
}

absl::StatusOr<Stage> StageFromProto(const plan_pb::Stage& in, const std::string& path) {
  Stage stage;
  stage.operations = RangesFromProto(in.operations());
  for (const plan_pb::Group& group : in.groups()) stage.groups.push_back({group.pool(), group.units(), group.share()});
  for (int i = 0; i < in.syncs_size(); ++i) {
    OperationSync sync;
    sync.operations = RangesFromProto(in.syncs(i).operations());
    MEDLEY_ASSIGN_OR_RETURN(sync.sync, SyncFromProto(in.syncs(i).sync(), fmt::format("{}.syncs[{}].sync", path, i)));
    stage.syncs.push_back(std::move(sync));
  }
  stage.priority = in.priority();
  MEDLEY_ASSIGN_OR_RETURN(stage.tables, FromProto(in.tables(), path + ".tables"));
  return stage;
}

void PlacementToProto(const Placement& placement, plan_pb::Placement& out) {
  RangesToProto(placement.operations, *out.mutable_operations());
  for (const Replica& replica : placement.replicas) {
    plan_pb::Replica& to = *out.add_replicas();
    to.set_device(replica.device);
    to.set_share(replica.share);
  }
  SyncToProto(placement.sync, *out.mutable_sync());
}

absl::StatusOr<Placement> PlacementFromProto(const plan_pb::Placement& in, const std::string& path) {
  Placement placement;
  placement.operations = RangesFromProto(in.operations());
  for (const plan_pb::Replica& replica : in.replicas())
    placement.replicas.push_back({replica.device(), replica.share()});
  MEDLEY_ASSIGN_OR_RETURN(placement.sync, SyncFromProto(in.sync(), path + ".sync"));
  return placement;
}

// The devices, the placements and what belongs to them.
void PlacedToProto(const ExecutionPlan& plan, plan_pb::ExecutionPlan& out) {
  for (const Device& device : plan.devices) ToProto(device, *out.add_devices());
  for (const Placement& placement : plan.placements) PlacementToProto(placement, *out.add_placements());
  for (const AlgorithmRule& rule : plan.algorithms) {
    plan_pb::AlgorithmRule& to = *out.add_algorithms();
    to.set_ranks(rule.ranks);
    to.set_max_bytes(rule.max_bytes);
    to.set_algorithm(AlgorithmToProto(rule.algorithm));
  }
  for (const OrderEntry& entry : plan.order) {
    out.add_order(static_cast<uint32_t>(entry.operation) * 3 + static_cast<uint32_t>(entry.phase));
  }
}

absl::Status PlacedFromProto(const plan_pb::ExecutionPlan& in, ExecutionPlan& plan) {
  for (const plan_pb::Device& device : in.devices()) plan.devices.push_back(FromProto(device));
  for (int i = 0; i < in.placements_size(); ++i) {
    MEDLEY_ASSIGN_OR_RETURN(Placement placement,
                            PlacementFromProto(in.placements(i), fmt::format("placements[{}]", i)));
    plan.placements.push_back(std::move(placement));
  }
  for (int i = 0; i < in.algorithms_size(); ++i) {
    const plan_pb::AlgorithmRule& rule = in.algorithms(i);
    MEDLEY_ASSIGN_OR_RETURN(const AllreduceAlgorithm algorithm,
                            AlgorithmFromProto(rule.algorithm(), fmt::format("algorithms[{}]", i)));
    plan.algorithms.push_back({rule.ranks(), rule.max_bytes(), algorithm});
  }
  for (const uint32_t entry : in.order()) {
    plan.order.push_back({static_cast<int>(entry / 3), static_cast<Phase>(entry % 3)});
  }
  return absl::OkStatus();
}

void EstimateToProto(const Estimate& estimate, plan_pb::Estimate& out) {
  out.set_throughput(estimate.throughput);
  out.set_usd_per_hour(estimate.usd_per_hour);
  out.set_usd_total(estimate.usd_total);
  out.set_seconds_total(estimate.seconds_total);
  out.set_simulated_throughput(estimate.simulated_throughput);
  for (const TimelineSpan& span : estimate.timeline) {
    plan_pb::TimelineSpan& to = *out.add_timeline();
    to.set_name(span.name);
    to.set_stage(span.stage);
    to.set_start_seconds(span.start_seconds);
    to.set_seconds(span.seconds);
  }
}

Estimate EstimateFromProto(const plan_pb::Estimate& in) {
  Estimate out{in.throughput(), in.usd_per_hour(), in.usd_total(), in.seconds_total(), {}, in.simulated_throughput()};
  for (const plan_pb::TimelineSpan& span : in.timeline()) {
    out.timeline.push_back({span.name(), span.stage(), span.start_seconds(), span.seconds()});
  }
  return out;
}

void ProvenanceToProto(const Provenance& provenance, plan_pb::Provenance& out) {
  out.set_planner(provenance.planner);
  out.set_seed(provenance.seed);
  out.set_catalog_revision(provenance.catalog_revision);
  if (!provenance.price_time.empty()) {
    // Prices carry valid times; should a time not parse, omit it rather than send a wrong one.
    google::protobuf::Timestamp time;
    if (TimeToProto(provenance.price_time, time).ok()) *out.mutable_price_time() = time;
  }
  out.set_profile_id(provenance.profile_id);
  out.set_lower_bound_usd(provenance.lower_bound_usd);
  out.set_gap(provenance.gap);
}

Provenance ProvenanceFromProto(const plan_pb::Provenance& in) {
  return {in.planner(),
          in.seed(),
          in.catalog_revision(),
          in.has_price_time() ? TimeFromProto(in.price_time()) : "",
          in.profile_id(),
          in.lower_bound_usd(),
          in.gap()};
}

}  // namespace

void ToProto(const Device& device, plan_pb::Device& out) {
  out.set_id(device.id);
  out.set_pool(device.pool);
  out.set_machine(device.machine);
  out.set_location(device.location);
}

Device FromProto(const plan_pb::Device& in) { return {in.id(), in.pool(), in.machine(), in.location()}; }

void ToProto(const ExecutionPlan& plan, plan_pb::ExecutionPlan& out) {
  out.Clear();
  out.set_job_uid(plan.job_uid);
  out.set_generation(plan.generation);
  for (const Stage& stage : plan.stages) StageToProto(stage, *out.add_stages());
  if (plan.servers) {
    out.mutable_servers()->set_pool(plan.servers->pool);
    out.mutable_servers()->set_units(plan.servers->units);
    out.mutable_servers()->set_in_trainers(plan.servers->in_trainers);
  }
  out.mutable_schedule()->set_kind(ToProto(plan.schedule.kind));
  out.mutable_schedule()->set_micro_batches(plan.schedule.micro_batches);
  out.mutable_schedule()->set_max_staleness(plan.schedule.max_staleness);
  out.mutable_schedule()->set_bucket_bytes(plan.schedule.bucket_bytes);
  out.mutable_schedule()->set_without_undo(plan.schedule.without_undo);
  out.mutable_schedule()->set_overlap_next_step(plan.schedule.overlap_next_step);
  PlacedToProto(plan, out);
  EstimateToProto(plan.estimate, *out.mutable_estimate());
  ProvenanceToProto(plan.provenance, *out.mutable_provenance());
}

absl::StatusOr<ExecutionPlan> FromProto(const plan_pb::ExecutionPlan& in) {
  ExecutionPlan plan;
  plan.job_uid = in.job_uid();
  plan.generation = in.generation();
  for (int i = 0; i < in.stages_size(); ++i) {
    MEDLEY_ASSIGN_OR_RETURN(Stage stage, StageFromProto(in.stages(i), fmt::format("stages[{}]", i)));
    plan.stages.push_back(std::move(stage));
  }
  if (in.has_servers()) plan.servers = Servers{in.servers().pool(), in.servers().units(), in.servers().in_trainers()};
  MEDLEY_ASSIGN_OR_RETURN(plan.schedule.kind, FromProto(in.schedule().kind(), "schedule.kind"));
  plan.schedule.micro_batches = in.schedule().micro_batches() == 0 ? 1 : in.schedule().micro_batches();
  plan.schedule.max_staleness = in.schedule().max_staleness();
  plan.schedule.bucket_bytes = in.schedule().bucket_bytes();
  plan.schedule.without_undo = in.schedule().without_undo();
  plan.schedule.overlap_next_step = in.schedule().overlap_next_step();
  MEDLEY_RETURN_IF_ERROR(PlacedFromProto(in, plan));
  plan.estimate = EstimateFromProto(in.estimate());
  plan.provenance = ProvenanceFromProto(in.provenance());
  return plan;
}

}  // namespace medley::model
