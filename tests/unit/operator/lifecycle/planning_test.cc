// Planning: what each answer of the scheduling service leads to, and plans of other operators.
#include <gmock/gmock.h>

#include "common/base/testing/status_matchers.h"
#include "tests/unit/operator/lifecycle/fake_cluster.h"

namespace medley::ops::lifecycle {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

AskForPlan::Outcome Infeasible(std::vector<model::Reason> reasons) {
  model::PlanResult result;
  result.reasons = std::move(reasons);
  return {result, false};
}

struct AnswerCase {
  const char* name;
  AskForPlan::Outcome outcome;
  const char* reason;  // of Planned, of a job without a plan
  const char* message;
  const char* event;  // of a job that runs; "": none
};

class AnswerTest : public testing::TestWithParam<AnswerCase> {};

TEST_P(AnswerTest, OfTheFirstPlanIsTheConditionPlanned) {
  FakeCluster cluster;
  cluster.planner = [](const model::PlanRequest&) { return GetParam().outcome; };
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_EQ(cluster.Reason(kPlannedCondition), GetParam().reason);
  EXPECT_THAT(cluster.Message(kPlannedCondition), HasSubstr(GetParam().message));
  EXPECT_FALSE(cluster.stored_plan().has_value());
  cluster.planner = nullptr;  // it comes right by itself
  EXPECT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
}

TEST_P(AnswerTest, OfAReplanLeavesTheRunningPlan) {
  FakeCluster cluster = FakeCluster::Training();
  const std::string before = cluster.Digest();
  cluster.planner = [](const model::PlanRequest&) { return GetParam().outcome; };
  cluster.SetSpec({{"objective", {{"maxUsdPerHour", "1"}}}});
  cluster.Pass();
  EXPECT_EQ(cluster.Digest(), before);
  if (*GetParam().event != '\0') {
    EXPECT_TRUE(cluster.HasEvent(GetParam().event, GetParam().message)) << cluster.trace();
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, AnswerTest,
    testing::Values(AnswerCase{"Unavailable",
                               {base::Unavailable("connection refused"), true},
                               "Unknown/SchedulerUnavailable",
                               "connection refused",
                               ""},
                    AnswerCase{"UnknownPlanner",
                               {base::NotFound("there is no planner 'best'"), false},
                               "False/UnknownPlanner",
                               "spec.planner.name: 'auto'",
                               "ReplanRefused"},
                    AnswerCase{"BadModel",
                               {base::InvalidArgument("layer 3 has no profile"), false},
                               "False/InvalidModel",
                               "spec.model: layer 3 has no profile",
                               "ReplanRefused"},
                    AnswerCase{"TooFewUnits", Infeasible({{"limit", "a", 9, 4, ""}}), "False/Infeasible",
                               "limit of a: needed 9, available 4 (bounded by nodes of a)", "ReplanInfeasible"},
                    AnswerCase{"NoPrice", Infeasible({{"price", "a", 0, 0, "pool a has no price"}}),
                               "False/PoolUnpriced", "pool a has no price", "ReplanInfeasible"},
                    AnswerCase{"NoReason", Infeasible({}), "False/Infeasible", "gave no reason", "ReplanInfeasible"}),
    [](const auto& each) { return each.param.name; });

// Issue 12: a job that waits for a busy pool was called infeasible.
TEST(PlanningTest, AJobThatWaitsForUnitsOfOtherJobsIsQueuedBehindThem) {
  FakeCluster cluster;
  cluster.planner = [](const model::PlanRequest&) {
    return Infeasible({{"minThroughput", "", 100, 40, "lower it"}, {"limit", "a", 9, 4, ""}});
  };
  cluster.pools.at("a").held_by_others = 1000;
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_EQ(cluster.Reason(kPlannedCondition), "False/Queued");
  EXPECT_THAT(cluster.Message(kPlannedCondition),
              HasSubstr("Waiting for 9 units of pool a: 1000 are in use by jobs ns/first, ns/second. "));
  EXPECT_TRUE(cluster.in_line());
  cluster.planner = nullptr;
  EXPECT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
}

TEST(PlanningTest, WhatOtherJobsHoldWouldNotBeEnough) {
  FakeCluster cluster;
  cluster.planner = [](const model::PlanRequest&) { return Infeasible({{"limit", "a", 1e6, 4, ""}}); };
  cluster.pools.at("a").held_by_others = 2;
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_EQ(cluster.Reason(kPlannedCondition), "False/Infeasible");
}

kube::Json UnitWithMemory(const char* quantity) {
  return {{"spec", {{"unit", {{"resources", {{"memory", quantity}}}}}}}};
}

// Issue 44: a job whose members cannot fit started, and ran out of memory again and again.
TEST(PlanningTest, AModelThatFitsIntoNoUnitIsRefusedBeforeAnythingIsBought) {
  FakeCluster cluster;
  cluster.weight_bytes = 1e9;
  for (const char* pool : {"a", "b", "c"}) cluster.pool_patches[pool] = UnitWithMemory("512Mi");
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_EQ(cluster.Reason(kPlannedCondition), "False/Infeasible");
  EXPECT_THAT(cluster.Message(kPlannedCondition), HasSubstr("a trainer of pool a needs at least"));
  EXPECT_THAT(cluster.Message(kPlannedCondition), HasSubstr("its unit has 512 MiB"));
  EXPECT_THAT(cluster.Message(kPlannedCondition), HasSubstr("parameters and optimizer state of fc (2.79 GiB)"));
  EXPECT_THAT(cluster.Message(kPlannedCondition), HasSubstr("raise spec.unit.resources.memory of pool a"));
  EXPECT_FALSE(cluster.stored_plan().has_value());
  EXPECT_TRUE(cluster.pods().empty()) << cluster.trace();
  EXPECT_LT(cluster.plans_asked(), 200) << "asked again at intervals, not without end";
  cluster.pool_patches["a"] = UnitWithMemory("16Gi");
  EXPECT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
}

TEST(PlanningTest, ThePlannerKnowsTheMemoryOfUnits) {
  FakeCluster cluster;
  cluster.weight_bytes = 1e9;
  cluster.pool_patches["a"] = UnitWithMemory("512Mi");
  cluster.planner = [](const model::PlanRequest& request) {
    model::PlanRequest fits = request;
    std::erase_if(fits.resources, [](const model::Resource& r) { return r.memory_bytes > 0 && r.memory_bytes < 3e9; });
    return FakeCluster::FirstPoolWithRoom(fits);
  };
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
  const PlanRecord record = cluster.stored_plan().value();
  for (const MemberSlot& slot : record.slots) EXPECT_NE(slot.pool, "a");
}

TEST(PlanningTest, AShortageThatThePlannerFindsNamesTheUnit) {
  FakeCluster cluster;
  cluster.pool_patches["a"] = UnitWithMemory("512Mi");
  cluster.planner = [](const model::PlanRequest&) {
    return Infeasible({{"memory", "a", 784672016, 554087477.9, "use larger units"}});
  };
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_EQ(cluster.Reason(kPlannedCondition), "False/Infeasible");
  EXPECT_THAT(cluster.Message(kPlannedCondition), HasSubstr("a stage needs 748.3 MiB for parameters"));
  EXPECT_THAT(cluster.Message(kPlannedCondition), HasSubstr("pool a"));
  EXPECT_THAT(cluster.Message(kPlannedCondition), HasSubstr("it has 512 MiB (spec.unit.resources.memory). Raise it"));
  cluster.pool_patches["a"] = {{"spec", {{"memory", "100Mi"}}}};  // of a device: the planner's own words
  cluster.PassFor(base::seconds(120));
  EXPECT_THAT(cluster.Message(kPlannedCondition), HasSubstr("use larger units"));
}

// The planner counts less than a process needs: it is asked for another plan.
TEST(PlanningTest, APlanThatDoesNotFitIsNotAnAnswer) {
  FakeCluster cluster;
  cluster.weight_bytes = 1e8;
  cluster.pool_patches["a"] = UnitWithMemory("400Mi");  // 300 MB of state would fit, but not with a version to undo
  int refused = 0;
  cluster.planner = [&](const model::PlanRequest& request) {
    model::PlanRequest fits = request;
    std::erase_if(fits.resources, [](const model::Resource& r) { return r.memory_bytes > 0 && r.memory_bytes < 3e8; });
    refused += fits.resources.size() < request.resources.size() ? 1 : 0;
    return FakeCluster::FirstPoolWithRoom(fits);
  };
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
  EXPECT_GT(refused, 0);
  const PlanRecord record = cluster.stored_plan().value();
  for (const MemberSlot& slot : record.slots) EXPECT_NE(slot.pool, "a");
}

TEST(PlanningTest, MessagesNameTheFieldsOfTheManifest) {
  FakeCluster cluster;
  cluster.planner = [](const model::PlanRequest&) {
    return Infeasible({{"maxCostPerHour", "", 3, 2, "needs at least 3 USD/h, maxCostPerHour is 2: raise it to 3"}});
  };
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_THAT(cluster.Message(kPlannedCondition), HasSubstr("maxUsdPerHour is 2: raise it to 3"));
}

TEST(PlanningTest, AnInvalidPlanIsAnError) {
  FakeCluster cluster;
  ASSERT_TRUE(cluster.RunUntilTraining());
  FakeCluster other;
  other.planner = [&](const model::PlanRequest&) {
    model::PlanResult result;
    result.execution_plan = cluster.stored_plan()->plan;
    result.execution_plan->stages[0].groups[0].pool = "somewhere";
    result.plan = model::ProvisionedPlan();
    return AskForPlan::Outcome{result, false};
  };
  for (int i = 0; i < 20 && other.plans_asked() == 0; ++i) {
    other.StepCluster();
    other.Pass();
  }
  const PassLog pass = other.Pass();
  EXPECT_THAT(pass.status,
              base::StatusIs(absl::StatusCode::kInternal, HasSubstr("'somewhere', which was not offered")));
}

TEST(PlanningTest, APlanThatCannotBeStoredIsNotRun) {
  FakeCluster cluster;
  cluster.failures["save plan"] = base::Unavailable("the API server does not answer");
  PassLog pass;
  for (int i = 0; i < 20 && cluster.plans_asked() == 0; ++i) {
    cluster.StepCluster();
    pass = cluster.Pass();
  }
  EXPECT_THAT(pass.status, base::StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_FALSE(cluster.memory().stored_plan.record.has_value());
  EXPECT_FALSE(cluster.HasEvent("PlanAccepted"));
  EXPECT_THAT(pass.actions, Not(Contains("create pods adult-coordinator")));
}

TEST(PlanningTest, APlanWhoseUnitsOthersGotIsPlannedAgain) {
  FakeCluster cluster;
  cluster.failures["reserve"] = base::ResourceExhausted("other jobs have got units of the plan; bounded by x");
  for (int i = 0; i < 20 && cluster.plans_asked() == 0; ++i) {
    cluster.StepCluster();
    cluster.Pass();
  }
  const PassLog pass = cluster.Pass();
  EXPECT_THAT(pass.status, base::IsOk());
  EXPECT_EQ(pass.requeue_after, base::milliseconds(100)) << "doubles each time";
  EXPECT_EQ(cluster.Reason(kPlannedCondition), "False/Queued");
  EXPECT_THAT(cluster.Message(kPlannedCondition), HasSubstr("bounded by x"));
  EXPECT_FALSE(cluster.stored_plan().has_value());
  EXPECT_TRUE(cluster.in_line());
  cluster.failures.clear();
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
  EXPECT_EQ(cluster.reserved(), (std::set<std::string>{"adult-0-a-0", "adult-0-a-1"}));
  EXPECT_FALSE(cluster.in_line());
}

TEST(PlanningTest, AReplanWhoseUnitsAreNotFreeLeavesThePlan) {
  FakeCluster cluster = FakeCluster::Training();
  const std::string before = cluster.Digest();
  cluster.pools["a"].price = 100;
  cluster.pools["b"].price = 1;
  cluster.planner = [](const model::PlanRequest& request) {
    model::PlanRequest others = request;
    std::erase_if(others.resources, [](const model::Resource& resource) { return resource.name == "a"; });
    return FakeCluster::FirstPoolWithRoom(others);
  };
  cluster.failures["reserve"] = base::FailedPrecondition("the pods of both plans exist during a switch");
  cluster.SetSpec({{"objective", {{"maxUsdPerHour", "5"}}}});
  const int asked = cluster.plans_asked();
  cluster.PassFor(std::chrono::minutes(30));
  EXPECT_LE(cluster.plans_asked(), asked + 20) << "after pauses of 0.1 s to 10 min";
  EXPECT_EQ(cluster.Digest(), before);
  EXPECT_TRUE(cluster.HasEvent("ReplanRefused", "The job keeps its plan: the pods of both plans")) << cluster.trace();
  EXPECT_EQ(cluster.reserved(), (std::set<std::string>{"adult-0-a-0", "adult-0-a-1"}));
  cluster.failures.clear();  // the edit is not forgotten
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_TRUE(cluster.pod_names().contains("adult-0-b-0")) << cluster.trace();
}

// Two trainers on pool b, with as many servers on pool a as it has units for, at most two.
AskForPlan::Outcome TrainersOnBServersOnA(const model::PlanRequest& request) {
  model::PlanRequest others = request;
  std::erase_if(others.resources, [](const model::Resource& resource) { return resource.name != "b"; });
  AskForPlan::Outcome outcome = FakeCluster::FirstPoolWithRoom(others);
  const auto a = std::ranges::find(request.resources, "a", &model::Resource::name);
  const int servers = std::min(2, static_cast<int>(a->limit));
  if (servers == 0) return Infeasible({{"limit", "a", 1, 0, ""}});
  model::ExecutionPlan& plan = *outcome.result->execution_plan;
  plan.servers = model::Servers{"a", servers};
  plan.stages.front().syncs.front().sync.kind = model::SyncKind::kParameterServer;
  outcome.result->plan->throughput = plan.estimate.throughput = 1000.0 * (2 * servers - 1);
  outcome.result->plan->cost_per_hour += servers * a->price_per_unit_hour;
  return outcome;
}

std::string MovesWhenBIsCheap(FakeCluster& cluster) {
  cluster.planner = TrainersOnBServersOnA;
  cluster.pools["a"].price = 10;
  cluster.pools["b"].price = 1;
  EXPECT_TRUE(cluster.Settle()) << cluster.trace();
  std::string servers;  // of each plan that was accepted
  for (const std::string& event : cluster.events()) {
    if (event.starts_with("PlanAccepted") && event.find("xb") != std::string::npos) {
      const auto has = [&](const char* part) { return event.find(part) != std::string::npos; };
      servers += has("+ 2 servers@a") ? "2 " : has("+ 1 server@a") ? "1 " : "0 ";
    }
  }
  return servers;
}

// The best plan needs two units of pool a for servers, of which the job's own trainers have all but one until the
// switch is over. It moved nowhere, and paid the high price to its end.
TEST(PlanningTest, AMoveDoesWithoutTheUnitsThatLeaveAndTakesThemLater) {
  FakeCluster cluster;
  cluster.pools["a"].limit = 3;
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
  EXPECT_EQ(MovesWhenBIsCheap(cluster), "1 2 ") << cluster.trace();
  EXPECT_TRUE(cluster.HasEvent("ReplanConsidered", "with the units that are free during a switch")) << cluster.trace();
  EXPECT_THAT(cluster.violations(), testing::IsEmpty());
}

TEST(PlanningTest, AMoveThatHasRoomForBothPlansIsMadeAtOnce) {
  FakeCluster cluster;
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
  EXPECT_EQ(MovesWhenBIsCheap(cluster), "2 ") << cluster.trace();
}

TEST(PlanningTest, WithoutAnyFreeUnitForTheSwitchTheJobKeepsItsPlanAndAsksSeldom) {
  FakeCluster cluster;
  cluster.pools["a"].limit = 2;
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
  const std::string before = cluster.Digest();
  cluster.planner = TrainersOnBServersOnA;
  cluster.pools["a"].price = 10;
  cluster.pools["b"].price = 1;
  const int asked = cluster.plans_asked();
  cluster.PassFor(std::chrono::minutes(30));
  EXPECT_LE(cluster.plans_asked(), asked + 40) << "twice after pauses of 0.1 s to 10 min";
  EXPECT_EQ(cluster.Digest(), before);
  EXPECT_TRUE(cluster.HasEvent("ReplanRefused", "both plans exist during a switch")) << cluster.trace();
  EXPECT_TRUE(cluster.HasEvent("ReplanRefused", "that are free during a switch no plan meets the goal: limit of a"))
      << cluster.trace();
  const int before_fewer = cluster.plans_asked();
  --cluster.pools["b"].limit;  // as other jobs take units all the time
  cluster.PassFor(std::chrono::seconds(2));
  EXPECT_EQ(cluster.plans_asked(), before_fewer) << cluster.trace();
  cluster.pools["a"].limit = 4;  // the better plan is not forgotten, and is not waited for
  cluster.PassFor(std::chrono::seconds(2));
  EXPECT_TRUE(cluster.HasEvent("PlanAccepted", "2 servers@a")) << cluster.trace();
  EXPECT_EQ(MovesWhenBIsCheap(cluster), "2 ") << cluster.trace();
}

// As two pools on the same nodes, or a quota over both.
TEST(PlanningTest, APlanOfUnitsThatAreNotFreeTogetherBecomesSmaller) {
  FakeCluster cluster;
  std::vector<int64_t> offered;
  cluster.planner = [&](const model::PlanRequest& request) {
    offered.push_back(request.resources.front().limit);
    return FakeCluster::FirstPoolWithRoom(request);
  };
  cluster.failures["reserve"] = base::ResourceExhausted("bounded by ResourceQuota q: pods");
  cluster.PassFor(base::seconds(30));
  ASSERT_GE(offered.size(), 3u);
  EXPECT_LT(offered[2], offered[0]);
  EXPECT_LE(offered.size(), 12u);
  cluster.failures.clear();
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
}

// The units are released before the next plan reserves its own.
TEST(PlanningTest, UnitsOfAPlanThatIsStoredAtTheSecondAttemptStayReserved) {
  FakeCluster cluster;
  cluster.failures["save plan"] = base::Unavailable("the API server does not answer");
  for (int i = 0; i < 20 && cluster.plans_asked() == 0; ++i) {
    cluster.StepCluster();
    cluster.Pass();
  }
  cluster.failures.clear();
  cluster.Pass();
  ASSERT_TRUE(cluster.stored_plan().has_value());
  EXPECT_EQ(cluster.reserved().size(), 2u);
}

TEST(PlanningTest, UnitsOfAPlanThatWasNotStoredAreGivenBack) {
  FakeCluster cluster;
  cluster.failures["save plan"] = base::Unavailable("the API server does not answer");
  for (int i = 0; i < 20 && cluster.plans_asked() == 0; ++i) {
    cluster.StepCluster();
    cluster.Pass();
  }
  EXPECT_FALSE(cluster.reserved().empty());
  cluster.planner = [](const model::PlanRequest&) { return Infeasible({}); };
  cluster.Pass();
  EXPECT_TRUE(cluster.reserved().empty());
}

TEST(PlanningTest, AJobIsPlannedAfterThoseAheadOfIt) {
  FakeCluster cluster;
  cluster.ahead = "team-b/urgent";
  for (int i = 0; i < 20; ++i) {
    cluster.StepCluster();
    EXPECT_THAT(cluster.Pass().status, base::IsOk());
  }
  EXPECT_EQ(cluster.plans_asked(), 0);
  EXPECT_EQ(cluster.Reason(kPlannedCondition), "Unknown/WaitingForTurn");
  EXPECT_THAT(cluster.Message(kPlannedCondition), HasSubstr("Job team-b/urgent waits for units"));
  cluster.ahead.clear();
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
  EXPECT_FALSE(cluster.in_line());
}

TEST(PlanningTest, UnitsAreReservedAgainAfterARestartAndReleasedAtTheEnd) {
  FakeCluster cluster = FakeCluster::Training();
  const std::set<std::string> members = {"adult-0-a-0", "adult-0-a-1"};
  cluster.RestartOperator();
  cluster.Pass();
  EXPECT_EQ(cluster.reserved(), members);
  cluster.SetSpec({{"runPolicy", {{"suspend", true}}}});
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_TRUE(cluster.reserved().empty());
  cluster.SetSpec({{"runPolicy", {{"suspend", false}}}});
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
  EXPECT_EQ(cluster.reserved().size(), 2u);
  cluster.coordinator().phase = JobPhase::kComplete;
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_TRUE(cluster.reserved().empty());
}

// Another operator has stored a plan meanwhile: the job goes on with that one.
TEST(PlanningTest, ThePlanOfAnotherOperatorCounts) {
  FakeCluster cluster = FakeCluster::Training();
  PlanRecord theirs = *cluster.memory().stored_plan.record;
  theirs.plan.generation = 9;
  const JobInput input = cluster.Input();
  cluster.noticed_nodes = {"a-0"};
  const World world = cluster.Observe();
  const SavePlan::Outcome overtaken{base::Aborted("another operator"), "v9", true,
                                    std::make_shared<const PlanRecord>(theirs)};
  const Respond respond = [&](const Action& action) {
    return std::holds_alternative<SavePlan>(action) ? overtaken : cluster.Carry(action);
  };
  const Decision decision = Decide(input, world, cluster.memory(), respond, cluster.options);
  EXPECT_THAT(decision.status, base::StatusIs(absl::StatusCode::kAborted));
  EXPECT_EQ(decision.memory.stored_plan.record->plan.generation, 9);
  EXPECT_EQ(decision.memory.stored_plan.version, "v9");
}

TEST(PlanningTest, AnUnreadablePlanIsMadeAgain) {
  FakeCluster cluster = FakeCluster::Training();
  cluster.memory() = Memory();
  const JobInput input = cluster.Input();
  const World world = cluster.Observe();
  kube::Object broken(
      kube::Json::parse(R"({"metadata": {"name": "adult-plan", "resourceVersion": "5", "ownerReferences":
      [{"uid": "job-1", "controller": true}]}, "data": {"plan.json": "{"}})"));
  std::vector<std::string> actions;
  const Respond respond = [&](const Action& action) {
    actions.push_back(Describe(action));
    const bool reads = std::holds_alternative<ReadPlan>(action);
    return reads ? std::make_shared<const kube::Object>(broken) : cluster.Carry(action);
  };
  const Decision decision = Decide(input, world, Memory(), respond, cluster.options);
  EXPECT_THAT(actions, Contains("ask for a plan"));
  EXPECT_TRUE(decision.memory.stored_plan.record.has_value());
}

// As the scheduling service answers the goal step time: replicas on the first devices of the request.
AskForPlan::Outcome OnFirstDevices(const model::PlanRequest& request, size_t count, double throughput) {
  model::PlanResult result;
  result.resources = request.resources;
  result.step_time = model::StepTimePlan{.seconds = 1 / throughput, .throughput = throughput};
  model::ExecutionPlan& plan = result.execution_plan.emplace();
  plan.devices.assign(request.cluster.devices.begin(), request.cluster.devices.begin() + static_cast<ptrdiff_t>(count));
  model::Placement& placement = plan.placements.emplace_back();
  placement.operations = {{0, 1}};
  for (const model::Device& device : plan.devices) {
    placement.replicas.push_back({device.id, 1.0 / static_cast<double>(count)});
  }
  if (count > 1) placement.sync.kind = model::SyncKind::kAllreduce;
  plan.schedule.micro_batches = 4;
  plan.estimate.throughput = throughput;
  plan.provenance.planner = "fake";
  return {result, false};
}

// The fastest plan runs as any other: units are reserved, pods created, and a faster one is worth a move.
TEST(PlanningTest, AJobThatWantsTheFastestPlan) {
  FakeCluster cluster;
  cluster.job["spec"]["model"] = {{"name", "mlp"}};
  cluster.job["spec"]["objective"] = {{"fastest", true}};
  cluster.planner = [](const model::PlanRequest& request) { return OnFirstDevices(request, 2, 1000); };
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
  EXPECT_EQ(cluster.last_request().objective, model::Objective::kStepTime);
  EXPECT_GE(cluster.last_request().cluster.devices.size(), 3U);
  ASSERT_TRUE(cluster.stored_plan().has_value());
  EXPECT_EQ(cluster.stored_plan()->plan.devices.size(), 2U);
  EXPECT_GT(cluster.stored_plan()->plan.estimate.usd_per_hour, 0);

  cluster.planner = [](const model::PlanRequest& request) { return OnFirstDevices(request, 1, 1000); };
  cluster.SetSpec({{"elasticity", {{"maxUnits", 63}}}});
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_EQ(cluster.stored_plan()->plan.devices.size(), 2U) << "cheaper, but no faster" << cluster.trace();

  cluster.planner = [](const model::PlanRequest& request) { return OnFirstDevices(request, 3, 100000); };
  cluster.SetSpec({{"elasticity", {{"maxUnits", 62}, {"replan", {{"cooldown", "0s"}}}}}});
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_EQ(cluster.stored_plan()->plan.devices.size(), 3U) << cluster.trace();
}

// Two devices of the pool that computes fastest and that maxUsdPerHour allows: a before b before c.
AskForPlan::Outcome TwoOfAnAffordablePool(const model::PlanRequest& request) {
  double throughput = 3000;
  for (const model::Resource& resource : request.resources) {
    throughput -= 900;
    if (2 * resource.price_per_unit_hour > request.constraints.max_cost_per_hour) continue;
    model::PlanRequest on_pool = request;
    std::erase_if(on_pool.cluster.devices, [&](const auto& device) { return device.pool != resource.name; });
    if (on_pool.cluster.devices.size() < 2) continue;
    return OnFirstDevices(on_pool, 2, throughput);
  }
  return Infeasible({{"maxCostPerHour", "", 6, request.constraints.max_cost_per_hour,
                      "the devices cost 6 USD/h, maxCostPerHour is 5: raise it to 6"}});
}

// The fastest plan within USD per hour: when its units become too expensive, the job moves to slower ones, which no
// saving of seconds would justify. When all are, it says so for as long as it lasts.
TEST(PlanningTest, AJobThatWantsTheFastestPlanForSomeUsdPerHour) {
  FakeCluster cluster;
  cluster.job["spec"]["model"] = {{"name", "mlp"}};
  cluster.job["spec"]["objective"] = {{"fastest", true}, {"maxUsdPerHour", "5"}};
  cluster.planner = TwoOfAnAffordablePool;
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
  EXPECT_EQ(cluster.last_request().objective, model::Objective::kStepTime);
  EXPECT_EQ(cluster.last_request().constraints.max_cost_per_hour, 5);
  EXPECT_EQ(cluster.stored_plan()->plan.devices[0].pool, "a");

  cluster.pools["a"].price = 3;  // two cost 6 USD an hour
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_TRUE(cluster.HasEvent("ReplanConsidered", "PriceChanged: move (Forced)")) << cluster.trace();
  EXPECT_EQ(cluster.stored_plan()->plan.devices[0].pool, "b") << cluster.trace();

  cluster.pools["b"].price = 3;
  cluster.pools["c"].price = 3;
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_EQ(cluster.stored_plan()->plan.devices[0].pool, "b") << "a running job keeps its plan";
  EXPECT_TRUE(cluster.HasEvent("ReplanInfeasible", "maxUsdPerHour is 5: raise it to 6")) << cluster.trace();
  EXPECT_EQ(cluster.Reason(kPlannedCondition), "True/PlanFound");
  EXPECT_THAT(cluster.Message(kPlannedCondition),
              HasSubstr("No plan meets the goal now, so the job keeps its plan: the devices cost 6 USD/h"));

  cluster.pools["b"].price = 2;
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_THAT(cluster.Message(kPlannedCondition), Not(HasSubstr("No plan meets the goal")));
  EXPECT_EQ(cluster.stored_plan()->plan.devices[0].pool, "b") << cluster.trace();
}

// A request without devices would be refused as invalid.
TEST(PlanningTest, AJobThatWantsTheFastestPlanWaitsForUnits) {
  FakeCluster cluster;
  cluster.job["spec"]["model"] = {{"name", "mlp"}};
  cluster.job["spec"]["objective"] = {{"fastest", true}};
  cluster.planner = [](const model::PlanRequest&) { return Infeasible({}); };
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();  // the layers are measured
  const int asked = cluster.plans_asked();
  cluster.planner = [](const model::PlanRequest& request) { return OnFirstDevices(request, 1, 1000); };
  const std::map<std::string, FakeCluster::Pool> pools = cluster.pools;
  for (auto& [name, pool] : cluster.pools) {
    pool.held_by_others = 4;
    for (const char* node : {"-0", "-1"}) cluster.node_units[name + node] = 0;
  }
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_EQ(cluster.plans_asked(), asked);
  EXPECT_EQ(cluster.Reason(kPlannedCondition), "False/Queued") << cluster.trace();
  EXPECT_THAT(cluster.Message(kPlannedCondition), HasSubstr("4 are in use by jobs ns/first, ns/second"));
  cluster.pools = pools;
  cluster.node_units.clear();
  EXPECT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
}

}  // namespace
}  // namespace medley::ops::lifecycle
