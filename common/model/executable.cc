#include "common/model/executable.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/unknown_field_set.h>
#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/model/convert.h"
#include "common/model/convert_enums.h"
#include "common/model/executable_rules.h"
#include "common/model/placement.h"
#include "medley/plan/v1/plan.pb.h"

namespace medley::model {
namespace {

namespace plan_pb = plan::v1;
namespace protobuf = google::protobuf;
using protobuf::FieldDescriptor;

// "Sync.mode" of "medley.plan.v1.Sync.mode".
std::string_view ShortName(const FieldDescriptor& field) {
  const std::string_view name = field.full_name();
  return name.substr(field.file()->package().size() + 1);
}

absl::Status NotExecuted(const std::string& path, const std::string& value, std::string_view instead) {
  return base::Unimplemented("{}: the runtime does not execute {}{}{}", path, value, instead.empty() ? "" : ": ",
                             instead);
}

std::string TextOf(const protobuf::Message& message, const FieldDescriptor& field) {
  if (field.is_repeated()) return fmt::format("{} entries", message.GetReflection()->FieldSize(message, &field));
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return fmt::format("{}", message.GetReflection()->GetDouble(message, &field));
    case FieldDescriptor::CPPTYPE_INT32:
      return std::to_string(message.GetReflection()->GetInt32(message, &field));
    default:
      return "a value";
  }
}

absl::Status CheckEnum(const protobuf::EnumDescriptor& type, int number, const std::string& path) {
  const protobuf::EnumValueDescriptor* value = type.FindValueByNumber(number);
  if (value == nullptr) return NotExecuted(path, fmt::format("value {}", number), "it does not know this value");
  const auto rule = ExecutableValues().find(value->name());
  if (rule == ExecutableValues().end()) return NotExecuted(path, value->name(), "it does not know this value");
  return rule->second.executed ? absl::OkStatus() : NotExecuted(path, value->name(), rule->second.instead);
}

absl::Status CheckMessage(const protobuf::Message& message, const std::string& path);

absl::Status CheckParts(const protobuf::Message& message, const FieldDescriptor& field, const std::string& path) {
  const protobuf::Reflection& reflection = *message.GetReflection();
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
    return CheckEnum(*field.enum_type(), reflection.GetEnumValue(message, &field), path);
  }
  if (!field.is_repeated()) return CheckMessage(reflection.GetMessage(message, &field), path);
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
    MEDLEY_RETURN_IF_ERROR(
        CheckMessage(reflection.GetRepeatedMessage(message, &field, i), fmt::format("{}[{}]", path, i)));
  }
  return absl::OkStatus();
}

absl::Status CheckMessage(const protobuf::Message& message, const std::string& path) {
  const protobuf::Reflection& reflection = *message.GetReflection();
  if (const auto& unknown = reflection.GetUnknownFields(message); !unknown.empty()) {
    return NotExecuted(path, fmt::format("field number {}", unknown.field(0).number()), "it does not know this field");
  }
  std::vector<const FieldDescriptor*> set;
  reflection.ListFields(message, &set);
  for (const FieldDescriptor* field : set) {
    const std::string here = path + "." + field->json_name();
    const auto rule = ExecutableFields().find(ShortName(*field));
    if (rule == ExecutableFields().end())
      return NotExecuted(here, TextOf(message, *field), "it does not know this field");
    if (rule->second.use == FieldUse::kRefused) {
      return NotExecuted(here, TextOf(message, *field), rule->second.instead);
    }
    if (rule->second.use == FieldUse::kByParts) MEDLEY_RETURN_IF_ERROR(CheckParts(message, *field, here));
  }
  return absl::OkStatus();
}

// Fields of other modes are no instruction: planners write a fraction of 1.
absl::Status CheckMode(const plan_pb::Sync& sync, const std::string& path) {
  const auto positive = [](double value) { return std::isfinite(value) && value > 0; };
  if (sync.mode() == plan_pb::SYNC_MODE_PERCENTAGE && !(positive(sync.fraction()) && sync.fraction() <= 1)) {
    return base::InvalidArgument("{}.fraction: must be greater than 0 and at most 1, is {}", path, sync.fraction());
  }
  if (sync.mode() == plan_pb::SYNC_MODE_FLEXIBLE && !positive(sync.target_ratio())) {
    return base::InvalidArgument("{}.targetRatio: must be greater than 0, is {}", path, sync.target_ratio());
  }
  return absl::OkStatus();
}

// Replicas that differ hold the whole model, or a step would mix different versions of its parts.
absl::Status CheckDifferingReplicas(const plan_pb::ExecutionPlan& plan) {
  const auto check = [&](const plan_pb::Sync& sync, const std::string& path) -> absl::Status {
    if (sync.mode() == plan_pb::SYNC_MODE_UNSPECIFIED || sync.mode() == plan_pb::SYNC_MODE_FULL)
      return absl::OkStatus();
    if (plan.schedule().without_undo()) {
      return NotExecuted("plan.schedule.withoutUndo", "true with " + plan_pb::SyncMode_Name(sync.mode()),
                         "replicas that differ keep the states of their last two agreements");
    }
    if (plan.schedule().overlap_next_step()) {
      return NotExecuted("plan.schedule.overlapNextStep", "true with " + plan_pb::SyncMode_Name(sync.mode()),
                         "replicas that differ are updated at the end of a step");
    }
    if (plan.stages_size() + plan.placements_size() == 1 && !plan.has_servers()) return absl::OkStatus();
    return NotExecuted(path + ".sync.mode", plan_pb::SyncMode_Name(sync.mode()),
                       "replicas that differ need one stage or placement that holds the whole model, without parameter "
                       "servers");
  };
  for (int s = 0; s < plan.stages_size(); ++s) {
    for (int i = 0; i < plan.stages(s).syncs_size(); ++i) {
      MEDLEY_RETURN_IF_ERROR(check(plan.stages(s).syncs(i).sync(), fmt::format("plan.stages[{}].syncs[{}]", s, i)));
    }
  }
  for (int p = 0; p < plan.placements_size(); ++p) {
    MEDLEY_RETURN_IF_ERROR(check(plan.placements(p).sync(), fmt::format("plan.placements[{}]", p)));
  }
  return absl::OkStatus();
}

absl::Status CheckReplicaSync(const plan_pb::Sync& sync, const std::string& path) {
  MEDLEY_RETURN_IF_ERROR(CheckMode(sync, path));
  if (sync.hierarchy_size() > kMostInnerLevels) {
    return NotExecuted(path + ".hierarchy", fmt::format("{} levels", sync.hierarchy_size()),
                       fmt::format("groups have at most {} levels below the outermost", kMostInnerLevels));
  }
  return absl::OkStatus();
}

// One policy holds for all replicas of a plan, and only stages have places that a cut plan can leave out.
absl::Status CheckAnomaly(const plan_pb::ExecutionPlan& plan) {
  const plan_pb::AnomalyPolicy* first = nullptr;
  for (int s = 0; s < plan.stages_size(); ++s) {
    for (int i = 0; i < plan.stages(s).syncs_size(); ++i) {
      const plan_pb::AnomalyPolicy& policy = plan.stages(s).syncs(i).sync().anomaly();
      const std::string path = fmt::format("plan.stages[{}].syncs[{}].sync.anomaly", s, i);
      if (policy.detector() == plan_pb::ANOMALY_DETECTOR_UNSPECIFIED) {
        if (policy.window() == 0 && policy.threshold() == 0) continue;
        return base::InvalidArgument("{}.detector: must be set with a window or a threshold", path);
      }
      if (policy.window() < kLeastAnomalyWindow || policy.window() > kMostAnomalyWindow) {
        return base::InvalidArgument("{}.window: must be {} to {} steps, is {}", path, kLeastAnomalyWindow,
                                     kMostAnomalyWindow, policy.window());
      }
      if (!(policy.threshold() > 0 && policy.threshold() <= kMostAnomalyThreshold)) {
        return base::InvalidArgument("{}.threshold: must be greater than 0 and at most {}, is {}", path,
                                     kMostAnomalyThreshold, policy.threshold());
      }
      if (first == nullptr) first = &policy;
      if (!protobuf::util::MessageDifferencer::Equals(*first, policy)) {
        return NotExecuted(path, "a policy that differs from another one of the plan",
                           "slow members are detected in the same way in the whole plan");
      }
    }
  }
  for (int p = 0; p < plan.placements_size(); ++p) {
    if (!plan.placements(p).sync().has_anomaly()) continue;
    return NotExecuted(fmt::format("plan.placements[{}].sync.anomaly", p), "a policy",
                       "slow members are left out of plans with stages only");
  }
  return absl::OkStatus();
}

absl::Status CheckStage(const plan_pb::Stage& stage, const std::string& path) {
  int units = 0;
  for (const plan_pb::Group& group : stage.groups()) units += group.units();
  for (int i = 0; i < stage.syncs_size(); ++i) {
    const plan_pb::Sync& sync = stage.syncs(i).sync();
    const std::string here = fmt::format("{}.syncs[{}].sync", path, i);
    MEDLEY_RETURN_IF_ERROR(CheckReplicaSync(sync, here));
    const bool none = sync.kind() == plan_pb::SYNC_KIND_UNSPECIFIED || sync.kind() == plan_pb::SYNC_KIND_NONE;
    if (none && units > 1) {
      return NotExecuted(here + ".kind", fmt::format("SYNC_KIND_NONE with {} units", units),
                         "replicas of a stage always agree on their parameters");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSchedule(const plan_pb::ExecutionPlan& plan) {
  const plan_pb::Schedule& schedule = plan.schedule();
  if (schedule.bucket_bytes() < 0) {
    return base::InvalidArgument("plan.schedule.bucketBytes: must not be negative, is {}", schedule.bucket_bytes());
  }
  if (schedule.micro_batches() < 0) {
    return base::InvalidArgument("plan.schedule.microBatches: must not be negative, is {}", schedule.micro_batches());
  }
  const bool asynchronous = schedule.kind() == plan_pb::SCHEDULE_KIND_ASYNC_1F1B;
  if (schedule.max_staleness() < 0 || (schedule.max_staleness() > 0 && !asynchronous)) {
    return base::InvalidArgument("plan.schedule.maxStaleness: must be 0, or greater than 0 with ASYNC_1F1B, is {}",
                                 schedule.max_staleness());
  }
  if (asynchronous && plan.has_servers()) {
    return NotExecuted("plan.schedule.kind", "ASYNC_1F1B with parameter servers",
                       "the rows on parameter servers are those of the last step");
  }
  if (schedule.overlap_next_step() && asynchronous) {
    return NotExecuted("plan.schedule.overlapNextStep", "true with ASYNC_1F1B",
                       "an asynchronous schedule updates each stage as soon as its gradients are complete");
  }
  if (schedule.overlap_next_step() && plan.has_servers()) {
    return NotExecuted("plan.schedule.overlapNextStep", "true with parameter servers",
                       "the rows on parameter servers are updated at once");
  }
  return absl::OkStatus();
}

absl::Status CheckRanges(const ExecutionPlan& plan, int operations) {
  for (size_t p = 0; p < plan.placements.size(); ++p) {
    for (const OperationRange& range : plan.placements[p].operations) {
      MEDLEY_RETURN_IF_ERROR(CheckRange(range, operations, fmt::format("plan.placements[{}].operations", p)));
    }
  }
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    const std::string path = fmt::format("plan.stages[{}]", s);
    for (const OperationRange& range : plan.stages[s].operations) {
      MEDLEY_RETURN_IF_ERROR(CheckRange(range, operations, path + ".operations"));
    }
    for (const OperationSync& sync : plan.stages[s].syncs) {
      for (const OperationRange& range : sync.operations) {
        MEDLEY_RETURN_IF_ERROR(CheckRange(range, operations, path + ".syncs"));
      }
    }
  }
  return absl::OkStatus();
}

// How the plan synchronises each operation; missing: it does not say.
std::map<int, SyncKind> Kinds(const Stage& stage) {
  std::map<int, SyncKind> kinds;
  for (const OperationSync& sync : stage.syncs) {
    for (const OperationRange& range : sync.operations) {
      for (int op = range.first; op < range.end; ++op) kinds[op] = sync.sync.kind;
    }
  }
  return kinds;
}

absl::Status CheckStageOperation(const ExecutionPlan& plan, const Stage& stage, int op, bool served,
                                 const OperationParts& parts, const std::string& path) {
  if (served && !parts.tables) {
    return NotExecuted(path, fmt::format("SYNC_KIND_PARAMETER_SERVER for operation {}", op),
                       "only the rows of embedding tables are kept on parameter servers");
  }
  if (!parts.tables || served) return absl::OkStatus();
  if (plan.servers) {
    return NotExecuted(path, fmt::format("operation {} without SYNC_KIND_PARAMETER_SERVER", op),
                       "a plan with servers keeps every embedding table on them");
  }
  if (stage.Units() > 1) {
    return NotExecuted(path, fmt::format("operation {} in {} units without servers", op, stage.Units()),
                       "the embedding tables of several units are kept on parameter servers");
  }
  return absl::OkStatus();
}

// Where a plan has servers, they keep every table. A placement of kind PARAMETER_SERVER says that its trainers hold
// nothing else.
absl::Status CheckPlacedOperation(const ExecutionPlan& plan, const Placement& placement, int op,
                                  const OperationParts& parts, const std::string& path) {
  if (placement.sync.kind == SyncKind::kParameterServer && (!plan.servers || !parts.tables || parts.dense)) {
    return NotExecuted(path + ".sync.kind", fmt::format("SYNC_KIND_PARAMETER_SERVER for operation {}", op),
                       "only the rows of embedding tables are kept on parameter servers");
  }
  if (parts.tables && !plan.servers && placement.replicas.size() > 1) {
    return NotExecuted(path + ".replicas",
                       fmt::format("{} replicas of operation {} without servers", placement.replicas.size(), op),
                       "the embedding tables of several replicas are kept on parameter servers");
  }
  return absl::OkStatus();
}

absl::Status CheckOperations(const ExecutionPlan& plan, const std::vector<OperationParts>& operations) {
  MEDLEY_RETURN_IF_ERROR(Validate(plan, static_cast<int>(operations.size())));
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    const Stage& stage = plan.stages[s];
    const std::map<int, SyncKind> kinds = Kinds(stage);
    for (const OperationRange& range : stage.operations) {
      for (int op = range.first; op < range.end; ++op) {
        const auto found = kinds.find(op);
        const bool served = found != kinds.end() && found->second == SyncKind::kParameterServer;
        MEDLEY_RETURN_IF_ERROR(CheckStageOperation(plan, stage, op, served, operations[static_cast<size_t>(op)],
                                                   fmt::format("plan.stages[{}].syncs", s)));
      }
    }
  }
  for (size_t p = 0; p < plan.placements.size(); ++p) {
    for (const OperationRange& range : plan.placements[p].operations) {
      for (int op = range.first; op < range.end; ++op) {
        MEDLEY_RETURN_IF_ERROR(CheckPlacedOperation(plan, plan.placements[p], op, operations[static_cast<size_t>(op)],
                                                    fmt::format("plan.placements[{}]", p)));
      }
    }
  }
  const bool tables = std::ranges::any_of(operations, [](const OperationParts& parts) { return parts.tables; });
  if (plan.servers && !tables) {
    return NotExecuted("plan.servers", fmt::format("{} units", plan.servers->units),
                       "the model has no embedding tables, which alone are kept on parameter servers");
  }
  return absl::OkStatus();
}

}  // namespace

std::optional<FieldUse> UseOf(const FieldDescriptor& field) {
  const auto rule = ExecutableFields().find(ShortName(field));
  return rule == ExecutableFields().end() ? std::nullopt : std::optional(rule->second.use);
}

std::optional<bool> IsExecuted(const protobuf::EnumValueDescriptor& value) {
  const auto rule = ExecutableValues().find(value.name());
  return rule == ExecutableValues().end() ? std::nullopt : std::optional(rule->second.executed);
}

absl::Status CheckExecutable(const plan_pb::ExecutionPlan& plan, const std::vector<OperationParts>& operations) {
  MEDLEY_RETURN_IF_ERROR(CheckMessage(plan, "plan"));
  for (int s = 0; s < plan.stages_size(); ++s) {
    MEDLEY_RETURN_IF_ERROR(CheckStage(plan.stages(s), fmt::format("plan.stages[{}]", s)));
  }
  for (int p = 0; p < plan.placements_size(); ++p) {
    MEDLEY_RETURN_IF_ERROR(CheckReplicaSync(plan.placements(p).sync(), fmt::format("plan.placements[{}].sync", p)));
  }
  MEDLEY_RETURN_IF_ERROR(CheckSchedule(plan));
  MEDLEY_RETURN_IF_ERROR(CheckDifferingReplicas(plan));
  MEDLEY_RETURN_IF_ERROR(CheckAnomaly(plan));
  MEDLEY_ASSIGN_OR_RETURN(const ExecutionPlan domain, FromProto(plan));
  for (const absl::Status& status : {CheckStageSyncs(domain), CheckPlaced(domain)}) {
    if (!status.ok()) return base::InvalidArgument("plan.{}", base::Message(status));
  }
  if (operations.empty()) return absl::OkStatus();
  MEDLEY_RETURN_IF_ERROR(CheckRanges(domain, static_cast<int>(operations.size())));
  return CheckOperations(domain, operations);
}

absl::Status CheckExecutable(const ExecutionPlan& plan) {
  plan_pb::ExecutionPlan message;
  ToProto(plan, message);
  return CheckExecutable(message);
}

}  // namespace medley::model
