#include "common/model/executable_rules.h"

namespace medley::model {
namespace {

constexpr FieldRule kExecuted{FieldUse::kExecuted};
constexpr FieldRule kByParts{FieldUse::kByParts};
constexpr FieldRule kDescription{FieldUse::kDescription};
constexpr FieldRule Refused(const char* instead) { return {FieldUse::kRefused, instead}; }

constexpr char kInOrder[] = "passes and messages follow the schedule, or the plan's order";

}  // namespace

const std::map<std::string_view, FieldRule>& ExecutableFields() {
  static const std::map<std::string_view, FieldRule> fields = {
      {"ExecutionPlan.job_uid", kExecuted},
      {"ExecutionPlan.generation", kExecuted},
      {"ExecutionPlan.stages", kByParts},
      {"ExecutionPlan.servers", kByParts},
      {"ExecutionPlan.schedule", kByParts},
      {"ExecutionPlan.order", kExecuted},
      {"ExecutionPlan.estimate", kDescription},
      {"ExecutionPlan.provenance", kDescription},
      {"ExecutionPlan.devices", kByParts},
      {"ExecutionPlan.placements", kByParts},
      {"ExecutionPlan.algorithms", kByParts},
      {"Device.id", kExecuted},
      {"Device.pool", kExecuted},
      {"Device.machine", kExecuted},
      {"Device.location", kExecuted},
      {"Replica.device", kExecuted},
      {"Replica.share", kExecuted},
      {"Placement.operations", kByParts},
      {"Placement.replicas", kByParts},
      {"Placement.sync", kByParts},
      {"AlgorithmRule.ranks", kExecuted},
      {"AlgorithmRule.max_bytes", kExecuted},
      {"AlgorithmRule.algorithm", kByParts},
      {"HierarchyLevel.groups", kByParts},
      {"HierarchyLevel.algorithm", kByParts},
      {"DeviceGroup.devices", kExecuted},
      {"OperationRange.first", kExecuted},
      {"OperationRange.end", kExecuted},
      {"Stage.operations", kByParts},
      {"Stage.groups", kByParts},
      {"Stage.syncs", kByParts},
      {"Stage.priority", Refused(kInOrder)},
      {"Stage.tables", kByParts},
      {"Tables.place", kByParts},
      {"Tables.cache_bytes", kExecuted},
      {"Tables.hits", kDescription},
      {"Group.pool", kExecuted},
      {"Group.units", kExecuted},
      {"Group.share", kExecuted},
      {"OperationSync.operations", kByParts},
      {"OperationSync.sync", kByParts},
      {"Sync.kind", kByParts},
      {"Sync.algorithm", kByParts},
      {"Sync.mode", kByParts},
      {"Sync.fraction", kExecuted},
      {"Sync.target_ratio", kExecuted},
      {"Sync.hierarchy", kByParts},
      {"Sync.anomaly", kByParts},
      {"Sync.root", kExecuted},
      {"AnomalyPolicy.detector", kByParts},
      {"AnomalyPolicy.window", kExecuted},
      {"AnomalyPolicy.threshold", kExecuted},
      {"Servers.pool", kExecuted},
      {"Servers.units", kExecuted},
      {"Servers.in_trainers", kExecuted},
      {"Schedule.kind", kByParts},
      {"Schedule.micro_batches", kExecuted},
      {"Schedule.max_staleness", kExecuted},
      {"Schedule.bucket_bytes", kExecuted},
      {"Schedule.without_undo", kExecuted},
      {"Schedule.overlap_next_step", kExecuted},
  };
  return fields;
}

const std::map<std::string_view, ValueRule>& ExecutableValues() {
  static const std::map<std::string_view, ValueRule> values = {
      {"SYNC_KIND_UNSPECIFIED", {}},
      {"SYNC_KIND_NONE", {}},
      {"SYNC_KIND_ALLREDUCE", {}},
      {"SYNC_KIND_PARAMETER_SERVER", {}},
      {"ALLREDUCE_ALGORITHM_UNSPECIFIED", {}},
      {"ALLREDUCE_ALGORITHM_AUTO", {}},
      {"ALLREDUCE_ALGORITHM_CENTRALIZED", {}},
      {"ALLREDUCE_ALGORITHM_RING", {}},
      {"ALLREDUCE_ALGORITHM_RECURSIVE_DOUBLING", {}},
      {"ALLREDUCE_ALGORITHM_LINEAR", {}},
      {"TABLE_PLACE_UNSPECIFIED", {}},
      {"TABLE_PLACE_DEVICE", {}},
      {"TABLE_PLACE_CACHE", {}},
      {"TABLE_PLACE_HOST", {}},
      {"SYNC_MODE_UNSPECIFIED", {}},
      {"SYNC_MODE_FULL", {}},
      {"SYNC_MODE_NONE", {}},
      {"SYNC_MODE_PERCENTAGE", {}},
      {"SYNC_MODE_FLEXIBLE", {}},
      {"ANOMALY_DETECTOR_UNSPECIFIED", {}},
      {"ANOMALY_DETECTOR_RUNNING_MEAN", {}},
      {"ANOMALY_DETECTOR_WINDOW", {}},
      {"SCHEDULE_KIND_UNSPECIFIED", {}},
      {"SCHEDULE_KIND_SYNC_1F1B", {}},
      {"SCHEDULE_KIND_GPIPE", {}},
      {"SCHEDULE_KIND_ASYNC_1F1B", {}},
  };
  return values;
}

}  // namespace medley::model
