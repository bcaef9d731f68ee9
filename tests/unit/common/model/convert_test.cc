#include "common/model/convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "common/base/rng.h"
#include "common/base/testing/status_matchers.h"
#include "common/model/allreduce_algorithm.h"
#include "common/model/execution_plan.h"
#include "common/model/model.h"
#include "common/model/order_entry.h"
#include "common/model/plan_result.h"
#include "common/model/planning.h"
#include "common/model/profile.h"
#include "common/model/resource.h"
#include "common/model/sync.h"
#include "common/model/synchronisation.h"
#include "common/model/text.h"
#include "medley/plan/v1/plan.pb.h"
#include "medley/profile/v1/profile.pb.h"
#include "medley/scheduler/v1/scheduler.pb.h"

namespace medley::model {
namespace {

using base::StatusIs;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

constexpr char kYaml[] = R"(model:
  name: "ctrdnn"
  layers:
    - name: embedding
      kind: EMBEDDING
      weightBytes: 640000000
      sparse: true
      attributes: {rows: "1000"}
      profiles:
        - {resourceType: cpu, computeSeconds: 1.2e-2, computeParallel: 0.98, measuredAt: "2026-11-21T07:15:00Z"}
training: {profileBatchSize: 64, samplesPerEpoch: 45000000}
resources:
  - {name: cpu, class: CPU, pricePerUnitHour: 0.04, limit: 480}
planner: {name: greedy, seed: 18446744073709551615, schedule: SCHEDULE_KIND_GPIPE,
          sync: {anomaly: {detector: ANOMALY_DETECTOR_WINDOW, window: 20}}}
)";

TEST(ConvertTest, OptionsOfPlannersKeepTheirValues) {
  PlanRequest request;
  request.planner.options = {{"population", 50.}, {"groups", "best"}, {"fast", true}};
  request.planner.policy = {"\1\2", "mine", true, true};
  scheduler::v1::PlanRequest message;
  ToProto(request, message);
  scheduler::v1::PlanRequest read;
  ASSERT_THAT(ParseText(ToJson(message), read), base::IsOk());
  const auto back = FromProto(read);
  ASSERT_THAT(back, base::IsOk());
  EXPECT_EQ(back->planner.options, request.planner.options);
  EXPECT_EQ(back->planner.policy, request.planner.policy);
  ToProto(PlanRequest(), message);
  EXPECT_FALSE(message.planner().has_options() || message.planner().has_policy());
  for (const char* wrong : {"[1]", "{b: 1}", "{}", "[]"}) {
    ASSERT_THAT(ParseText(fmt::format("planner: {{options: {{a: {}}}}}", wrong), read), base::IsOk());
    EXPECT_THAT(FromProto(read), StatusIs(kInvalid, "planner.options.a: must be a number, a text, true or false"));
  }
  EXPECT_THAT(ParseText("planner: {options: 3}", read),
              StatusIs(kInvalid, HasSubstr("planner.options: must be an object, is 3")));
}

TEST(ConvertTest, OptionsOfPlannersRoundTrip) {
  for (const Grouping grouping : {Grouping::kNone, Grouping::kAuto, Grouping::kPool}) {
    PlanRequest request;
    request.planner.sync.hierarchy = grouping;
    if (grouping == Grouping::kAuto) request.planner.evaluator = EvaluatorKind::kCostModel;
    scheduler::v1::PlanRequest message;
    ToProto(request, message);
    const auto back = FromProto(message);
    ASSERT_THAT(back, base::IsOk());
    EXPECT_EQ(back->planner.sync, request.planner.sync);
    EXPECT_EQ(back->planner.evaluator, request.planner.evaluator);
  }
  scheduler::v1::PlanRequest message;
  message.mutable_planner()->mutable_sync()->set_hierarchy(static_cast<scheduler::v1::Hierarchy>(9));
  EXPECT_THAT(FromProto(message), StatusIs(kInvalid, "planner.sync.hierarchy: unknown value 9"));
  message.mutable_planner()->clear_sync();
  message.mutable_planner()->set_evaluator(static_cast<scheduler::v1::Evaluator>(9));
  EXPECT_THAT(FromProto(message), StatusIs(kInvalid, "planner.evaluator: unknown value 9"));
}

// What the simulator needs of a request, and says of a plan.
TEST(ConvertTest, LinksAndSimulatedFiguresRoundTrip) {
  PlanRequest request;
  request.links = {{"cpu", "gpu", 1e-4, 1e9, 2e-5, 3e-9, 1e-5, 5e6}};
  Resource& unit = request.resources.emplace_back();
  unit.name = "cpu";
  unit.processor_seconds_per_message = 2e-5;
  unit.processor_seconds_per_message_in_a_row = 1e-5;
  unit.computed_bytes_per_message = 5e6;
  for (const int micro_batches : {0, 1, 8}) {
    request.training.micro_batches = micro_batches;
    scheduler::v1::PlanRequest message;
    ToProto(request, message);
    const auto back = FromProto(message);
    ASSERT_THAT(back, base::IsOk());
    EXPECT_EQ(back->links, request.links);
    EXPECT_EQ(back->resources, request.resources);
    EXPECT_EQ(back->training.micro_batches, micro_batches) << "0 is unknown, not 1";
  }
  PlanResult result;
  result.plan.emplace();
  result.simulated = {1234.5, 6.75, 3};
  result.judge = "simulator";
  scheduler::v1::PlanResponse message;
  ToProto(result, message);
  const auto back = FromProto(message);
  ASSERT_THAT(back, base::IsOk());
  EXPECT_EQ(back->simulated, result.simulated);
  EXPECT_EQ(back->judge, "simulator");
}

absl::Status Parse(std::string_view text) {
  scheduler::v1::PlanRequest message;
  return ParseText(text, message);
}

// What was a field or a value before options had a form of their own.
TEST(ConvertTest, OldOptionsOfPlannersAreNamedInWords) {
  for (const char* old : {"recurrent", "genetic", "bayesian"}) {
    EXPECT_THAT(Parse(fmt::format("planner: {{{}: {{rounds: 3}}}}", old)),
                StatusIs(kInvalid, AllOf(HasSubstr(fmt::format("planner.{}: is no longer a field", old)),
                                         HasSubstr("planner.options"), HasSubstr("GET /v1/planners"))));
  }
  for (const char* old : {"HIERARCHY_EQUAL_POWER", "HIERARCHY_RANDOM", "HIERARCHY_ONE_RING"}) {
    EXPECT_THAT(Parse(fmt::format("planner: {{sync: {{hierarchy: {}}}}}", old)),
                StatusIs(kInvalid, AllOf(HasSubstr(old), HasSubstr("is no longer a value; there are HIERARCHY_AUTO"))));
  }
}

TEST(ConvertTest, ReservedNamesAreNamedInWords) {
  scheduler::v1::ProvisionRequest message;
  EXPECT_THAT(ParseText("schedule: [cpu]\nmethod: newton\n", message),
              StatusIs(kInvalid, HasSubstr("method: is no longer a field")));
}

// Each value of a Struct is an object in memory, so it counts as one.
TEST(ConvertTest, ManyOptionsAreBounded) {
  std::string list;
  for (int i = 0; i < 40'000; ++i) list += "[],";
  EXPECT_THAT(Parse("planner: {options: {a: [" + list + "1]}}"),
              StatusIs(kInvalid, HasSubstr("more than 32768 objects")));
}

TEST(ConvertTest, YamlRequestWithDefaults) {
  scheduler::v1::PlanRequest message;
  ASSERT_THAT(ParseText(kYaml, message), base::IsOk());
  const auto request = FromProto(message);
  ASSERT_THAT(request, base::IsOk());
  EXPECT_EQ(request->model.layers[0].profiles[0].compute_seconds, 0.012);
  EXPECT_EQ(request->model.layers[0].profiles[0].measured_at, "2026-11-21T07:15:00Z");
  EXPECT_EQ(request->model.layers[0].attributes.at("rows"), "1000");
  EXPECT_EQ(request->training.state_factor, 3);
  EXPECT_EQ(request->training.epochs, 1);
  EXPECT_EQ(request->constraints.min_units, 1);
  EXPECT_EQ(request->planner.seed, 18446744073709551615u);
  EXPECT_EQ(request->planner.schedule, ScheduleKind::kGpipe);
  EXPECT_EQ(request->planner.time_budget_seconds, 10);
  EXPECT_EQ(request->planner.sync.detector, AnomalyDetector::kWindow);
  EXPECT_EQ(request->planner.sync.anomaly_window, 20);
  EXPECT_EQ(request->planner.sync.anomaly_threshold, 3) << "the default";
  EXPECT_THAT(Validate(*request), base::IsOk());
  // The JSON and YAML that we write are read back to the same message.
  for (const std::string& text : {ToJson(message), ToJson(message, true), ToYaml(message)}) {
    scheduler::v1::PlanRequest again;
    ASSERT_THAT(ParseText(text, again), base::IsOk()) << text;
    EXPECT_EQ(again.SerializeAsString(), message.SerializeAsString()) << text;
  }
}

TEST(ConvertTest, RefusalsNameThePath) {
  EXPECT_THAT(Parse("model: {layers: [{name: a}, {nmae: b}]}"),
              StatusIs(kInvalid, "model.layers[1].nmae: unknown field; did you mean `name`?"));
  EXPECT_THAT(Parse("model: {layers: {a: 1}}"), StatusIs(kInvalid, HasSubstr("model.layers: must be a list")));
  EXPECT_THAT(Parse("resources: [{limit: 1.5}]"),
              StatusIs(kInvalid, HasSubstr("resources[0].limit: must be an integer")));
  EXPECT_THAT(Parse("resources: [{limit: 3000000000}]"), StatusIs(kInvalid, HasSubstr("resources[0].limit")));
  EXPECT_THAT(Parse("training: {epochs: many}"), StatusIs(kInvalid, HasSubstr("training.epochs: must be a number")));
  EXPECT_THAT(Parse("training: {epochs: .nan}"),
              StatusIs(kInvalid, HasSubstr("training.epochs: .nan is not a finite number")));
  EXPECT_THAT(Parse("planner: {schedule: FAST}"), StatusIs(kInvalid, HasSubstr("planner.schedule: must be one of")));
  EXPECT_THAT(Parse("planner: {sync: {hierarchy: HIERARCHY_TREE}}"),
              StatusIs(kInvalid, HasSubstr("planner.sync.hierarchy: must be one of")));
  for (const char* meant : {"HIERARCHY_BYPOOL", "by-pool", "By Pool", "by_pol"}) {
    EXPECT_THAT(Parse(std::string("planner: {sync: {hierarchy: ") + meant + "}}"),
                StatusIs(kInvalid, AllOf(HasSubstr("planner.sync.hierarchy: must be one of HIERARCHY_AUTO, "),
                                         HasSubstr("; did you mean `HIERARCHY_BY_POOL`?"))));
  }
  EXPECT_THAT(Parse("objective: steptime"), StatusIs(kInvalid, HasSubstr("did you mean `OBJECTIVE_STEP_TIME`?")));
  EXPECT_THAT(Parse("objective: cheap"), StatusIs(kInvalid, Not(HasSubstr("did you mean"))));
  EXPECT_THAT(Parse("objective: cheap"), StatusIs(kInvalid, Not(HasSubstr("UNSPECIFIED"))));
  EXPECT_THAT(Parse("planner: {name: 3}"), StatusIs(kInvalid, HasSubstr("planner.name: must be a string")));
  EXPECT_THAT(Parse("{\"profileId\": \"a\", \"profileId\": \"b\"}"),
              StatusIs(kInvalid, "profileId: is given twice, at line 1, column 30"));
  EXPECT_THAT(Parse("profileId: a\nprofileId: b"),
              StatusIs(kInvalid, "profileId: is given twice, at line 2, column 1"));
  EXPECT_THAT(Parse("profileId: a\nprofile_id: b"), StatusIs(kInvalid, "profile_id: is given twice"));
  EXPECT_THAT(Parse("{\n  \"model\": }"), StatusIs(kInvalid, HasSubstr("line 2, column 12")));
  EXPECT_THAT(Parse("model: [a\n"), StatusIs(kInvalid, HasSubstr("broken YAML at line")));
  EXPECT_THAT(Parse(""), StatusIs(kInvalid, HasSubstr("empty")));
  EXPECT_THAT(Parse("[]"), StatusIs(kInvalid, HasSubstr("the document: must be an object")));
  EXPECT_THAT(Parse("{\"serverType\": \"\xff\"}"), StatusIs(kInvalid));
  EXPECT_THAT(Parse("{\"training\": {\"epochs\": 1e999}}"), StatusIs(kInvalid));
}

TEST(ConvertTest, PartsOfAStepRoundTripAndAreAtMostTheWhole) {
  Profile profile{.profile_batch_size = 8};
  Layer layer{.name = "a", .kind = "OTHER"};
  layer.profiles = {{.resource_type = "cpu", .compute_seconds = 1, .forward_part = 0.5, .update_part = 0.25}};
  profile.model = {"m", {layer}};
  profile::v1::Profile message;
  ToProto(profile, message);
  const absl::StatusOr<Profile> again = FromProto(message);
  ASSERT_THAT(again, base::IsOk());
  EXPECT_EQ(again->model, profile.model);
  EXPECT_THAT(Validate(profile.model), base::IsOk());
  profile.model.layers[0].profiles[0].update_part = 0.75;
  EXPECT_THAT(Validate(profile.model), StatusIs(kInvalid, HasSubstr("updatePart")));
}

TEST(ConvertTest, BombsAreRefused) {
  std::string deep(100000, '[');
  EXPECT_THAT(Parse(deep), StatusIs(kInvalid));
  std::string laughs = "a: &a [x,x,x,x,x,x,x,x,x,x]\n";
  for (char c = 'b'; c < 'k'; ++c) {
    laughs += fmt::format("{}: &{} [", c, c);
    for (int i = 0; i < 10; ++i) laughs += fmt::format("*{},", static_cast<char>(c - 1));
    laughs += "]\n";
  }
  EXPECT_THAT(Parse(laughs), StatusIs(kInvalid, HasSubstr("more than 16 times as large as it is")));
}

ExecutionPlan SomePlan() {
  ExecutionPlan plan;
  plan.job_uid = "u";
  plan.generation = 3;
  Sync ps{.kind = SyncKind::kParameterServer};
  Sync flexible{.kind = SyncKind::kAllreduce,
                .algorithm = AllreduceAlgorithm::kRing,
                .mode = SyncMode::kFlexible,
                .target_ratio = 0.02,
                .hierarchy = {{{{"v100/0"}, {"t4/0"}}, AllreduceAlgorithm::kLinear}},
                .root = "v100/0",
                .detector = AnomalyDetector::kWindow,
                .anomaly_window = 8,
                .anomaly_threshold = 3};
  plan.stages = {{{{0, 1}}, {{"cpu", 4, 1}}, {{{{0, 1}}, ps}}, 1},
                 {{{1, 3}}, {{"v100", 1, 0.75}, {"t4", 1, 0.25}}, {{{{1, 2}}, flexible}}, 0}};
  plan.servers = Servers{"cpu", 2};
  plan.schedule = {ScheduleKind::kAsync1F1B, 4, 2, 1 << 20, true};
  for (const Phase phase : {Phase::kForward, Phase::kBackward, Phase::kReduce}) {
    for (int operation = 0; operation < 3; ++operation) plan.order.push_back({operation, phase});
  }
  plan.algorithms = {{2, 4096, AllreduceAlgorithm::kCentralized}};
  plan.estimate = {100, 2.5, 10, 14400, {{"fwd", 0, 0, 1}}};
  plan.provenance = {"exact", 7, 17, "2026-11-21T07:15:00Z", "p", 9, 0.1};
  return plan;
}

TEST(ConvertTest, ExecutionPlanRoundTrip) {
  plan::v1::ExecutionPlan message;
  ToProto(SomePlan(), message);
  const auto back = FromProto(message);
  ASSERT_THAT(back, base::IsOk());
  EXPECT_EQ(*back, SomePlan());
  message.mutable_stages(0)->mutable_syncs(0)->mutable_sync()->set_kind(static_cast<plan::v1::SyncKind>(99));
  EXPECT_THAT(FromProto(message), StatusIs(kInvalid, "stages[0].syncs[0].sync.kind: unknown value 99"));
}

// A two-way replicated operation, then one on a third device.
ExecutionPlan PlacedPlan() {
  ExecutionPlan plan;
  plan.job_uid = "u";
  plan.devices = {
      {"cpu/0", "cpu", "a", "zone-1/rack-1"}, {"cpu/1", "cpu", "b", "zone-1/rack-2"}, {"gpu/0", "gpu", "", ""}};
  Sync sync{.kind = SyncKind::kAllreduce, .hierarchy = {{{{"cpu/0"}, {"cpu/1"}}}}, .root = "cpu/1"};
  plan.placements = {{{{0, 1}}, {{"cpu/0", 0.25}, {"cpu/1", 0.75}}, sync}, {{{1, 3}}, {{"gpu/0", 1}}, {}}};
  return plan;
}

TEST(ConvertTest, NotesRoundTrip) {
  PlanResult result;
  result.planner = "exact";
  result.notes = {"planner mine failed; the answer is the service's own", "another"};
  scheduler::v1::PlanResponse message;
  ToProto(result, message);
  const auto back = FromProto(message);
  ASSERT_THAT(back, base::IsOk());
  EXPECT_EQ(back->notes, result.notes);
}

TEST(ConvertTest, AllreduceMeasurementsRoundTrip) {
  Profile profile;
  profile.id = "p";
  profile.allreduces = {{"cpu", 2, 4096, AllreduceAlgorithm::kRing, 1e-3},
                        {"gpu", 4, 16 << 20, AllreduceAlgorithm::kRecursiveDoubling, 0.25}};
  medley::profile::v1::Profile proto;
  ToProto(profile, proto);
  EXPECT_EQ(FromProto(proto).value(), profile);
  PlanRequest request;
  request.allreduces = profile.allreduces;
  scheduler::v1::PlanRequest request_proto;
  ToProto(request, request_proto);
  EXPECT_EQ(FromProto(request_proto).value().allreduces, profile.allreduces);
}

TEST(ConvertTest, WrongAllreduceMeasurementsAreRefused) {
  const auto refusal = [](std::string_view fields) {
    medley::profile::v1::Profile proto;
    EXPECT_EQ(ParseText(fmt::format("allreduces: [{{{}}}]", fields), proto), absl::OkStatus());
    return base::Message(FromProto(proto).status());
  };
  EXPECT_EQ(refusal("ranks: 2, bytes: 1, seconds: 1"), "allreduces[0].algorithm: must name an algorithm, not AUTO");
  constexpr char kRing[] = "algorithm: ALLREDUCE_ALGORITHM_RING";
  EXPECT_EQ(refusal(fmt::format("{}, ranks: 1, bytes: 1, seconds: 1", kRing)),
            "allreduces[0].ranks: must be at least 2, is 1");
  EXPECT_EQ(refusal(fmt::format("{}, ranks: 2, seconds: 1", kRing)), "allreduces[0].bytes: must be at least 1, is 0");
  EXPECT_EQ(refusal(fmt::format("{}, ranks: 2, bytes: 1", kRing)),
            "allreduces[0].seconds: must be greater than 0, is 0");
}

TEST(ConvertTest, PlacedPlanRoundTrip) {
  plan::v1::ExecutionPlan message;
  ToProto(PlacedPlan(), message);
  const auto back = FromProto(message);
  ASSERT_THAT(back, base::IsOk());
  EXPECT_EQ(*back, PlacedPlan());
}

TEST(ExecutionPlanTest, PlacementsAreChecked) {
  EXPECT_THAT(Validate(PlacedPlan(), 3), base::IsOk());
  const auto refused = [](const std::function<void(ExecutionPlan&)>& change) {
    ExecutionPlan plan = PlacedPlan();
    change(plan);
    return std::string(Validate(plan, 3).message());
  };
  EXPECT_EQ(refused([](auto& p) { p.stages = SomePlan().stages; }),
            "stages: a plan has either stages or devices and placements, not both");
  EXPECT_EQ(refused([](auto& p) {
              p.placements[1].operations = {{1, 2}};
            }),
            "placements: operation 2 is in no placement");
  EXPECT_EQ(refused([](auto& p) {
              p.placements[1].operations = {{0, 3}};
            }),
            "placements[1].operations[0]: operation 0 appears twice");
  EXPECT_EQ(refused([](auto& p) { p.placements[0].replicas[1].share = 0.5; }),
            "placements[0].replicas: the shares must sum to 1, they sum to 0.75");
  EXPECT_EQ(refused([](auto& p) { p.placements[0].replicas[1].device = "cpu/7"; }),
            "placements[0].replicas[1]: there is no device 'cpu/7'");
  EXPECT_EQ(refused([](auto& p) { p.devices[1].id = "cpu/0"; }), "devices[1].id: 'cpu/0' appears twice");
  EXPECT_EQ(refused([](auto& p) {
              p.devices.push_back({"cpu/9", "cpu", "", ""});
            }),
            "devices[3]: 'cpu/9' is in no placement");
  EXPECT_EQ(refused([](auto& p) { p.placements[0].sync.root = "gpu/0"; }),
            "placements[0].sync.root: 'gpu/0' is no replica");
  EXPECT_EQ(refused([](auto& p) { p.placements[0].sync.hierarchy[0].groups.pop_back(); }),
            "placements[0].sync.hierarchy[0]: 1 of 2 replicas are in a group");
  EXPECT_EQ(refused([](auto& p) {
              p.order = {{0, Phase::kForward}};
            }),
            "order: has 1 passes, but 3 operations have 6: all or none must be in it");
  EXPECT_EQ(refused([](auto& p) { p.schedule.bucket_bytes = -1; }), "schedule.bucketBytes: must not be negative");
}

TEST(ExecutionPlanTest, ShardsInTrainersAreThoseOfTheStagesWithTables) {
  ExecutionPlan plan = SomePlan();
  const int trainers = TrainersThatPullRows(plan);
  ASSERT_GT(trainers, 0);
  plan.servers = Servers{"", trainers, true};
  EXPECT_THAT(Validate(plan, 3), base::IsOk());
  EXPECT_THAT(Summary(plan, {"emb", "fc", "loss"}), HasSubstr(" + rows in 4 trainers"));
  plan::v1::ExecutionPlan message;
  ToProto(plan, message);
  EXPECT_EQ(FromProto(message).value().servers, plan.servers);
  plan.servers->units = trainers - 1;
  EXPECT_THAT(Validate(plan, 3), StatusIs(kInvalid, HasSubstr("servers.units: each of the 4 trainers")));
  plan.servers = Servers{"cpu", trainers, true};
  EXPECT_THAT(Validate(plan, 3), StatusIs(kInvalid, HasSubstr("servers.pool: must be empty with inTrainers")));
  ExecutionPlan placed = PlacedPlan();
  placed.servers = Servers{"", 1, true};
  EXPECT_THAT(Validate(placed, 3), StatusIs(kInvalid, HasSubstr("servers.inTrainers: only trainers of stages")));
}

TEST(ExecutionPlanTest, ValidateAndSummary) {
  EXPECT_THAT(Validate(SomePlan(), 3), base::IsOk());
  EXPECT_EQ(Summary(SomePlan(), {"emb", "fc", "loss"}), "emb@4xcpu | fc..loss@1xv100+1xt4 + 2 servers@cpu");
  ExecutionPlan plan = SomePlan();
  plan.stages[1].operations[0].end = 2;
  EXPECT_THAT(Validate(plan, 3), StatusIs(kInvalid, HasSubstr("operation 2 is in no stage")));
  plan = SomePlan();
  plan.stages[1].operations[0].first = 0;
  EXPECT_THAT(Validate(plan, 3), StatusIs(kInvalid, HasSubstr("stages[1].operations[0]: operation 0 appears twice")));
  plan = SomePlan();
  plan.servers.reset();
  EXPECT_THAT(Validate(plan, 3), StatusIs(kInvalid, HasSubstr("servers: must be set")));
  plan = SomePlan();
  plan.stages[1].groups[0].share = 0.5;
  EXPECT_THAT(Validate(plan, 3), StatusIs(kInvalid, HasSubstr("stages[1].groups: the shares must sum to 1")));
  plan = SomePlan();
  plan.stages[1].syncs[0].sync.root = "cpu/0";
  EXPECT_THAT(Validate(plan, 3), StatusIs(kInvalid, HasSubstr("stages[1].syncs[0].sync.root: 'cpu/0' is no replica")));
  plan = SomePlan();
  plan.stages[1].syncs[0].sync.hierarchy[0].groups.pop_back();
  EXPECT_THAT(Validate(plan, 3), StatusIs(kInvalid, HasSubstr("sync.hierarchy[0]: 1 of 2 replicas are in a group")));
  // Whoever reads a plan makes a device of each unit, and an action of each micro-batch.
  plan = SomePlan();
  plan.stages[0].groups[0].units = std::numeric_limits<int>::max();
  EXPECT_THAT(Validate(plan, 3),
              StatusIs(kInvalid, HasSubstr("stages[0].groups[0].units: the plan has more than 100000 units")));
  plan = SomePlan();
  plan.servers->units = std::numeric_limits<int>::max();
  EXPECT_THAT(Validate(plan, 3), StatusIs(kInvalid, HasSubstr("servers.units: the plan has more than 100000 units")));
  plan = SomePlan();
  plan.schedule.micro_batches = 65537;
  EXPECT_THAT(Validate(plan, 3), StatusIs(kInvalid, HasSubstr("schedule.microBatches: must be from 1 to 65536")));
}

// yaml-cpp's LoadAll never returns from the garbage after the first document, and uses all memory meanwhile.
TEST(TextTest, GarbageAfterADocumentIsRefused) {
  scheduler::v1::PlanRequest message;
  EXPECT_FALSE(ParseText("\"ctrdnn\",\"layers\":[{\"name\":1}e,\"x\"]", message).ok());
  EXPECT_FALSE(ParseText("- macro: a\n  condition:\n    (b in (\n\"c\",\n    \"d\"\n    )  )\n    )", message).ok());
}

// Mutations of a valid document never crash the reader, and each document that it accepts survives a round trip.
TEST(TextFuzzTest, MutatedDocumentsNeverCrash) {
  scheduler::v1::PlanRequest seed;
  ASSERT_THAT(ParseText(kYaml, seed), base::IsOk());
  const std::vector<std::string> bases = {kYaml, ToJson(seed), ToYaml(seed)};
  const std::string alphabet = "{}[]:,-\"'&*!|>%@#?\n\t 0123456789eE.+truefalsenull\\u\xff\x01";
  base::Rng rng(20261121);
  int accepted = 0;
  for (int round = 0; round < 6000; ++round) {
    std::string text = bases[rng.Below(bases.size())];
    for (uint64_t n = 1 + rng.Below(6); n > 0; --n) {
      const size_t at = rng.Below(text.size());
      switch (rng.Below(4)) {
        case 0:
          text[at] = alphabet[rng.Below(alphabet.size())];
          break;
        case 1:
          text.erase(at, 1 + rng.Below(20));
          break;
        case 2:
          text.insert(at, 1, alphabet[rng.Below(alphabet.size())]);
          break;
        default:
          text.insert(at, text.substr(rng.Below(text.size()), rng.Below(40)));
          break;
      }
      if (text.empty()) text = "x";
    }
    scheduler::v1::PlanRequest message;
    if (!ParseText(text, message).ok()) continue;
    ++accepted;
    const auto request = FromProto(message);
    if (request.ok()) static_cast<void>(Validate(*request));
    scheduler::v1::PlanRequest again;
    ASSERT_THAT(ParseText(ToJson(message), again), base::IsOk()) << text;
  }
  std::printf("seed 20261121: %d of 6000 accepted\n", accepted);
  EXPECT_GT(accepted, 50);
}

}  // namespace
}  // namespace medley::model
