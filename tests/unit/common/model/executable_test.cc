// Walks the descriptors of the plan: every field and every value of an enumeration needs a decision, and the check must
// act on it.
#include "common/model/executable.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>

#include "common/base/testing/status_matchers.h"
#include "common/model/execution_plan.h"
#include "common/model/operation_range.h"
#include "common/model/sync.h"
#include "common/model/synchronisation.h"
#include "medley/plan/v1/plan.pb.h"

namespace medley::model {
namespace {

namespace plan_pb = plan::v1;
using base::IsOk;
using base::StatusIs;
using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using testing::AllOf;
using testing::HasSubstr;

constexpr auto kUnimplemented = absl::StatusCode::kUnimplemented;
constexpr auto kRefused = absl::StatusCode::kInvalidArgument;

// Two units with tables on servers, then one unit with a dense operation.
plan_pb::ExecutionPlan GoodPlan() {
  plan_pb::ExecutionPlan plan;
  plan.set_job_uid("uid");
  plan.set_generation(1);
  for (int s = 0; s < 2; ++s) {
    plan_pb::Stage& stage = *plan.add_stages();
    plan_pb::OperationRange range;
    range.set_first(s);
    range.set_end(s + 1);
    *stage.add_operations() = range;
    plan_pb::Group& group = *stage.add_groups();
    group.set_pool("cpu");
    group.set_units(2 - s);
    group.set_share(1);
    plan_pb::OperationSync& sync = *stage.add_syncs();
    *sync.add_operations() = range;
    sync.mutable_sync()->set_kind(s == 0 ? plan_pb::SYNC_KIND_PARAMETER_SERVER : plan_pb::SYNC_KIND_ALLREDUCE);
    sync.mutable_sync()->set_fraction(1);  // as the planners write it
  }
  plan.mutable_servers()->set_pool("cpu");
  plan.mutable_servers()->set_units(1);
  plan.mutable_schedule()->set_micro_batches(4);
  plan.mutable_estimate()->set_throughput(1);
  plan.mutable_provenance()->set_planner("exact");
  return plan;
}
const std::vector<OperationParts> kOperations = {{.tables = true}, {.dense = true}};

// Every message and enumeration that instructions of the plan consist of: not those of descriptions.
void Collect(const Descriptor& type, std::set<const Descriptor*>& messages, std::set<const EnumDescriptor*>& enums) {
  if (!messages.insert(&type).second) return;
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (UseOf(field) == FieldUse::kDescription) continue;
    if (field.enum_type() != nullptr) enums.insert(field.enum_type());
    if (field.message_type() != nullptr) Collect(*field.message_type(), messages, enums);
  }
}

// Calls `visit` for a message of each type of the plan, with its path; missing ones are added for the call.
void Visit(Message& message, const std::string& path, const std::function<void(Message&, const std::string&)>& visit) {
  visit(message, path);
  const auto& reflection = *message.GetReflection();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *message.GetDescriptor()->field(i);
    if (field.message_type() == nullptr || UseOf(field) != FieldUse::kByParts) continue;
    const std::string here = path + "." + field.json_name();
    if (!field.is_repeated()) {
      Visit(*reflection.MutableMessage(&message, &field), here, visit);
    } else if (reflection.FieldSize(message, &field) > 0) {
      Visit(*reflection.MutableRepeatedMessage(&message, &field, 0), here + "[0]", visit);
    }
  }
}

// Sets a field to a value that is not its default.
void Set(Message& message, const FieldDescriptor& field) {
  const auto& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return field.is_repeated() ? reflection.AddDouble(&message, &field, 0.25)
                                 : reflection.SetDouble(&message, &field, 0.25);
    case FieldDescriptor::CPPTYPE_INT32:
      return field.is_repeated() ? reflection.AddInt32(&message, &field, 7) : reflection.SetInt32(&message, &field, 7);
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection.SetInt64(&message, &field, 7);
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection.AddUInt32(&message, &field, 7);
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.SetBool(&message, &field, true);
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection.SetString(&message, &field, "a");
    case FieldDescriptor::CPPTYPE_MESSAGE:
      if (field.is_repeated()) reflection.AddMessage(&message, &field);
      return;
    default:
      FAIL() << field.full_name() << ": no refused field had this type until now; the test cannot set it";
  }
}

TEST(ExecutableTest, EveryFieldAndValueHasADecision) {
  std::set<const Descriptor*> messages;
  std::set<const EnumDescriptor*> enums;
  Collect(*plan_pb::ExecutionPlan::descriptor(), messages, enums);
  for (const Descriptor* type : messages) {
    for (int i = 0; i < type->field_count(); ++i) {
      EXPECT_TRUE(UseOf(*type->field(i)).has_value()) << type->field(i)->full_name();
    }
  }
  for (const EnumDescriptor* type : enums) {
    for (int i = 0; i < type->value_count(); ++i) {
      EXPECT_TRUE(IsExecuted(*type->value(i)).has_value()) << type->value(i)->full_name();
    }
  }
  EXPECT_GE(messages.size(), 8U);
  EXPECT_EQ(enums.size(), 6U);
}

TEST(ExecutableTest, APlanOfThePlannersIsExecuted) {
  EXPECT_THAT(CheckExecutable(GoodPlan()), IsOk());
  EXPECT_THAT(CheckExecutable(GoodPlan(), kOperations), IsOk());
}

TEST(ExecutableTest, EveryRefusedFieldIsRefusedByName) {
  plan_pb::ExecutionPlan plan = GoodPlan();
  int refused = 0;
  Visit(plan, "plan", [&](Message& message, const std::string& path) {
    for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
      const FieldDescriptor& field = *message.GetDescriptor()->field(i);
      if (UseOf(field) != FieldUse::kRefused) continue;
      const std::unique_ptr<Message> before(message.New());
      before->CopyFrom(message);
      Set(message, field);
      EXPECT_THAT(CheckExecutable(plan), StatusIs(kUnimplemented, HasSubstr(path + "." + field.json_name() + ": ")));
      message.CopyFrom(*before);
      ++refused;
    }
  });
  EXPECT_EQ(refused, 1);
  EXPECT_THAT(CheckExecutable(plan), IsOk());
}

TEST(ExecutableTest, EveryValueOfAnEnumerationIsExecutedOrRefusedByName) {
  plan_pb::ExecutionPlan plan = GoodPlan();
  int values = 0;
  Visit(plan, "plan", [&](Message& message, const std::string& path) {
    for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
      const FieldDescriptor& field = *message.GetDescriptor()->field(i);
      // Tests of their own are below.
      const bool apart = field.name() == "kind" || field.name() == "mode" || field.name() == "detector";
      if (field.enum_type() == nullptr || apart) continue;
      for (int v = 0; v < field.enum_type()->value_count(); ++v, ++values) {
        const auto& value = *field.enum_type()->value(v);
        message.GetReflection()->SetEnum(&message, &field, &value);
        const absl::Status status = CheckExecutable(plan);
        if (IsExecuted(value).value_or(false)) {
          EXPECT_THAT(status, IsOk()) << value.full_name();
        } else {
          EXPECT_THAT(status, StatusIs(kUnimplemented, AllOf(HasSubstr(path + "." + field.json_name() + ": "),
                                                             HasSubstr(value.name()))));
        }
      }
      message.GetReflection()->ClearField(&message, &field);
    }
  });
  EXPECT_EQ(values, 10);
}

TEST(ExecutableTest, AsynchronousSchedulesHaveNoServers) {
  plan_pb::ExecutionPlan plan = GoodPlan();
  plan.mutable_schedule()->set_kind(plan_pb::SCHEDULE_KIND_GPIPE);
  EXPECT_THAT(CheckExecutable(plan), IsOk());
  plan.mutable_schedule()->set_kind(plan_pb::SCHEDULE_KIND_ASYNC_1F1B);
  EXPECT_THAT(CheckExecutable(plan),
              StatusIs(kUnimplemented,
                       "plan.schedule.kind: the runtime does not execute ASYNC_1F1B with parameter servers: the rows "
                       "on parameter servers are those of the last step"));
  plan.clear_servers();
  plan.mutable_stages(0)->mutable_groups(0)->set_units(1);
  plan.mutable_stages(0)->mutable_syncs(0)->mutable_sync()->set_kind(plan_pb::SYNC_KIND_NONE);
  EXPECT_THAT(CheckExecutable(plan), IsOk());
  plan.mutable_schedule()->set_max_staleness(2);
  EXPECT_THAT(CheckExecutable(plan, kOperations), IsOk());
  plan.mutable_schedule()->set_max_staleness(-1);
  EXPECT_THAT(CheckExecutable(plan), StatusIs(kRefused, HasSubstr("plan.schedule.maxStaleness: ")));
  plan.mutable_schedule()->set_max_staleness(2);
  plan.mutable_schedule()->set_kind(plan_pb::SCHEDULE_KIND_SYNC_1F1B);
  EXPECT_THAT(CheckExecutable(plan), StatusIs(kRefused, HasSubstr("greater than 0 with ASYNC_1F1B")));
}

TEST(ExecutableTest, ReplicasThatDifferHoldTheWholeModel) {
  plan_pb::ExecutionPlan plan = GoodPlan();
  plan.mutable_stages()->DeleteSubrange(1, 1);
  plan_pb::Sync& sync = *plan.mutable_stages(0)->mutable_syncs(0)->mutable_sync();
  sync.set_kind(plan_pb::SYNC_KIND_ALLREDUCE);
  sync.set_mode(plan_pb::SYNC_MODE_NONE);
  EXPECT_THAT(CheckExecutable(plan),
              StatusIs(kUnimplemented,
                       HasSubstr("plan.stages[0].syncs[0].sync.mode: the runtime does not execute SYNC_MODE_NONE: "
                                 "replicas that differ need one stage or placement that holds the whole model")));
  plan.clear_servers();
  EXPECT_THAT(CheckExecutable(plan), IsOk());
  plan.mutable_schedule()->set_without_undo(true);
  EXPECT_THAT(CheckExecutable(plan), StatusIs(kUnimplemented, HasSubstr("plan.schedule.withoutUndo: ")));
  plan.mutable_schedule()->set_without_undo(false);
  plan.mutable_schedule()->set_overlap_next_step(true);
  EXPECT_THAT(CheckExecutable(plan), StatusIs(kUnimplemented, HasSubstr("plan.schedule.overlapNextStep: ")));
  plan.mutable_schedule()->set_overlap_next_step(false);
  sync.set_mode(plan_pb::SYNC_MODE_PERCENTAGE);
  for (const double wrong : {0.0, -1.0, 1.5, std::nan("")}) {
    sync.set_fraction(wrong);
    EXPECT_THAT(CheckExecutable(plan), StatusIs(kRefused, HasSubstr("plan.stages[0].syncs[0].sync.fraction: ")));
  }
  sync.set_fraction(1);
  EXPECT_THAT(CheckExecutable(plan), IsOk());
  sync.set_mode(plan_pb::SYNC_MODE_FLEXIBLE);
  EXPECT_THAT(CheckExecutable(plan), StatusIs(kRefused, HasSubstr("plan.stages[0].syncs[0].sync.targetRatio: ")));
  sync.set_target_ratio(0.02);
  EXPECT_THAT(CheckExecutable(plan), IsOk());
  *plan.add_stages() = plan.stages(0);
  EXPECT_THAT(CheckExecutable(plan), StatusIs(kUnimplemented, HasSubstr("SYNC_MODE_FLEXIBLE: ")));
}

TEST(ExecutableTest, SlowMembersAreDetectedInTheSameWayInTheWholePlan) {
  const std::string path = "plan.stages[1].syncs[0].sync.anomaly";
  plan_pb::ExecutionPlan plan = GoodPlan();
  plan_pb::AnomalyPolicy& policy = *plan.mutable_stages(1)->mutable_syncs(0)->mutable_sync()->mutable_anomaly();
  EXPECT_THAT(CheckExecutable(plan), IsOk()) << "off";
  policy.set_window(16);
  EXPECT_THAT(CheckExecutable(plan), StatusIs(kRefused, HasSubstr(path + ".detector: must be set")));
  policy.set_threshold(3);
  for (const auto detector : {plan_pb::ANOMALY_DETECTOR_RUNNING_MEAN, plan_pb::ANOMALY_DETECTOR_WINDOW}) {
    policy.set_detector(detector);
    EXPECT_THAT(CheckExecutable(plan, kOperations), IsOk());
  }
  for (const int wrong : {-1, 0, 3, 1001}) {
    policy.set_window(wrong);
    EXPECT_THAT(CheckExecutable(plan), StatusIs(kRefused, HasSubstr(path + ".window: must be 4 to 1000 steps")));
  }
  policy.set_window(4);
  for (const double wrong : {-1.0, 0.0, 101.0, std::nan("")}) {
    policy.set_threshold(wrong);
    EXPECT_THAT(CheckExecutable(plan), StatusIs(kRefused, HasSubstr(path + ".threshold: must be greater than 0")));
  }
  policy.set_threshold(100);
  plan_pb::AnomalyPolicy& other = *plan.mutable_stages(0)->mutable_syncs(0)->mutable_sync()->mutable_anomaly();
  other = policy;
  EXPECT_THAT(CheckExecutable(plan, kOperations), IsOk());
  other.set_threshold(3);
  EXPECT_THAT(CheckExecutable(plan), StatusIs(kUnimplemented, HasSubstr("in the same way in the whole plan")));
  other = plan_pb::AnomalyPolicy();
  EXPECT_THAT(CheckExecutable(plan, kOperations), IsOk()) << "not where one replica needs none";
}

TEST(ExecutableTest, FieldsAndValuesOfANewerPlanAreRefused) {
  plan_pb::ExecutionPlan plan = GoodPlan();
  plan.mutable_stages(1)->GetReflection()->MutableUnknownFields(plan.mutable_stages(1))->AddVarint(900, 1);
  EXPECT_THAT(CheckExecutable(plan), StatusIs(kUnimplemented, HasSubstr("plan.stages[1]: the runtime does not execute "
                                                                        "field number 900")));
  plan = GoodPlan();
  plan.mutable_estimate()->GetReflection()->MutableUnknownFields(plan.mutable_estimate())->AddVarint(900, 1);
  EXPECT_THAT(CheckExecutable(plan), IsOk()) << "an estimate asks for nothing";
  plan.mutable_schedule()->set_kind(static_cast<plan_pb::ScheduleKind>(77));
  EXPECT_THAT(CheckExecutable(plan), StatusIs(kUnimplemented, HasSubstr("value 77")));
}

TEST(ExecutableTest, BlocksHaveTheirOwnAlgorithms) {
  plan_pb::ExecutionPlan plan = GoodPlan();
  plan_pb::Stage& stage = *plan.mutable_stages(1);
  *stage.add_syncs() = stage.syncs(0);
  stage.mutable_syncs(0)->mutable_sync()->set_algorithm(plan_pb::ALLREDUCE_ALGORITHM_RING);
  stage.mutable_syncs(1)->mutable_sync()->set_algorithm(plan_pb::ALLREDUCE_ALGORITHM_LINEAR);
  EXPECT_THAT(CheckExecutable(plan), IsOk());
}

// Two operations, the first with a table, on devices "a" and "b".
plan_pb::ExecutionPlan PlanOnDevices() {
  plan_pb::ExecutionPlan plan;
  for (const char* id : {"a", "b"}) {
    plan.add_devices()->set_id(id);
    plan.mutable_devices()->rbegin()->set_pool("cpu");
  }
  for (int op = 0; op < 2; ++op) {
    plan_pb::Placement& placement = *plan.add_placements();
    plan_pb::OperationRange& range = *placement.add_operations();
    range.set_first(op);
    range.set_end(op + 1);
    for (const char* id : {"a", "b"}) {
      placement.add_replicas()->set_device(id);
      placement.mutable_replicas()->rbegin()->set_share(0.5);
    }
    placement.mutable_sync()->set_kind(op == 0 ? plan_pb::SYNC_KIND_PARAMETER_SERVER : plan_pb::SYNC_KIND_ALLREDUCE);
  }
  plan.mutable_servers()->set_pool("cpu");
  plan.mutable_servers()->set_units(1);
  return plan;
}

TEST(ExecutableTest, PlacementsAreExecuted) {
  plan_pb::ExecutionPlan plan = PlanOnDevices();
  EXPECT_THAT(CheckExecutable(plan, kOperations), IsOk());
  for (uint32_t entry = 0; entry < 6; ++entry) plan.add_order(entry);
  EXPECT_THAT(CheckExecutable(plan, kOperations), IsOk());
  plan.mutable_order()->RemoveLast();  // a reduction
  EXPECT_THAT(CheckExecutable(plan, kOperations), IsOk());
  plan.mutable_order()->RemoveLast();
  EXPECT_THAT(CheckExecutable(plan, kOperations), StatusIs(kRefused, HasSubstr("order: has 3 passes")));
  plan.clear_order();
  plan.add_order(2);  // the reduction of the first operation
  EXPECT_THAT(CheckExecutable(plan, kOperations), IsOk());
}

TEST(ExecutableTest, PlacementsAreRefusedByField) {
  const auto refusal = [](const auto& change) {
    plan_pb::ExecutionPlan plan = PlanOnDevices();
    change(plan);
    return std::string(CheckExecutable(plan, kOperations).message());
  };
  EXPECT_EQ(
      refusal([](auto& plan) {
        plan.mutable_placements(1)->mutable_sync()->set_kind(plan_pb::SYNC_KIND_PARAMETER_SERVER);
      }),
      "plan.placements[1].sync.kind: the runtime does not execute SYNC_KIND_PARAMETER_SERVER for operation 1: only "
      "the rows of embedding tables are kept on parameter servers");
  EXPECT_EQ(refusal([](auto& plan) {
              plan.clear_servers();
              plan.mutable_placements(0)->mutable_sync()->set_kind(plan_pb::SYNC_KIND_NONE);
            }),
            "plan.placements[0].replicas: the runtime does not execute 2 replicas of operation 0 without servers: the "
            "embedding tables of several replicas are kept on parameter servers");
  EXPECT_EQ(refusal([](auto& plan) { plan.mutable_placements(1)->mutable_sync()->set_mode(plan_pb::SYNC_MODE_NONE); }),
            "plan.placements[1].sync.mode: the runtime does not execute SYNC_MODE_NONE: replicas that differ need one "
            "stage or placement that holds the whole model, without parameter servers");
  EXPECT_EQ(refusal([](auto& plan) { plan.mutable_placements(1)->mutable_replicas(0)->set_device("c"); }),
            "plan.placements[1].replicas[0]: there is no device 'c'");
  EXPECT_EQ(refusal([](auto& plan) { plan.mutable_placements(1)->mutable_operations(0)->set_end(7); }),
            "plan.placements[1].operations: [1, 7) is not a range of operations within [0, 2)");
}

TEST(ExecutableTest, GroupsAreOfTheStagesDevicesInTwoLevels) {
  plan_pb::ExecutionPlan plan = GoodPlan();
  plan_pb::Sync& sync = *plan.mutable_stages(0)->mutable_syncs(0)->mutable_sync();
  plan_pb::HierarchyLevel& level = *sync.add_hierarchy();
  level.add_groups()->add_devices("cpu/0");
  EXPECT_THAT(
      CheckExecutable(plan),
      StatusIs(kRefused, HasSubstr("plan.stages[0].syncs[0].sync.hierarchy[0]: 1 of 2 replicas are in a group")));
  level.add_groups()->add_devices("cpu/2");
  EXPECT_THAT(CheckExecutable(plan), StatusIs(kRefused, HasSubstr("'cpu/2' is no replica")));
  level.mutable_groups(1)->set_devices(0, "cpu/1");
  EXPECT_THAT(CheckExecutable(plan), IsOk());
  sync.set_root("cpu/2");
  EXPECT_THAT(CheckExecutable(plan), StatusIs(kRefused, HasSubstr("sync.root: 'cpu/2' is no replica")));
  sync.clear_root();
  *sync.add_hierarchy() = level;
  EXPECT_THAT(CheckExecutable(plan), IsOk());
  sync.mutable_hierarchy(0)->mutable_groups(0)->add_devices("cpu/1");
  sync.mutable_hierarchy(0)->mutable_groups()->RemoveLast();
  EXPECT_THAT(
      CheckExecutable(plan),
      StatusIs(kRefused, HasSubstr("hierarchy[1]: 'cpu/0' and 'cpu/1' are in one group of the level below and in "
                                   "two here")));
  *sync.mutable_hierarchy(0) = sync.hierarchy(1);
  *sync.add_hierarchy() = sync.hierarchy(1);
  EXPECT_THAT(CheckExecutable(plan),
              StatusIs(kUnimplemented, HasSubstr("sync.hierarchy: the runtime does not execute")));
}

TEST(ExecutableTest, RangesAreOfTheModel) {
  for (const bool sync : {false, true}) {
    for (const auto& [first, end] : {std::pair(0, 2'000'000'000), std::pair(-1, 1), std::pair(1, 1), std::pair(1, 3)}) {
      plan_pb::ExecutionPlan plan = GoodPlan();
      plan_pb::Stage& stage = *plan.mutable_stages(1);
      plan_pb::OperationRange& range =
          sync ? *stage.mutable_syncs(0)->mutable_operations(0) : *stage.mutable_operations(0);
      range.set_first(first);
      range.set_end(end);
      EXPECT_THAT(CheckExecutable(plan, kOperations),
                  StatusIs(kRefused, HasSubstr("is not a range of operations within [0, 2)")));
    }
  }
}

TEST(ExecutableTest, HowOperationsAreSynchronisedFitsWhatTheyConsistOf) {
  plan_pb::ExecutionPlan plan = GoodPlan();
  plan.mutable_stages(0)->mutable_syncs(0)->mutable_sync()->set_kind(plan_pb::SYNC_KIND_NONE);
  EXPECT_THAT(CheckExecutable(plan), StatusIs(kUnimplemented, HasSubstr("SYNC_KIND_NONE with 2 units")));
  plan = GoodPlan();
  plan.mutable_stages(1)->mutable_syncs(0)->mutable_sync()->set_kind(plan_pb::SYNC_KIND_PARAMETER_SERVER);
  EXPECT_THAT(CheckExecutable(plan), IsOk()) << "only the model tells";
  EXPECT_THAT(CheckExecutable(plan, kOperations), StatusIs(kUnimplemented, HasSubstr("plan.stages[1].syncs: ")));
  plan = GoodPlan();
  plan.mutable_stages(0)->clear_syncs();
  plan.clear_servers();
  EXPECT_THAT(CheckExecutable(plan, kOperations), StatusIs(kUnimplemented, HasSubstr("in 2 units without servers")));
  plan.mutable_stages(0)->mutable_groups(0)->set_units(1);
  EXPECT_THAT(CheckExecutable(plan, kOperations), IsOk());
  EXPECT_THAT(CheckExecutable(plan, {{.tables = true}, {.dense = true}, {.dense = true}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("operation 2 is in no stage")));
}

}  // namespace
}  // namespace medley::model
