// Tests single decisions of the state machine; simulation_test.cc runs whole jobs.
#include "worker/coordinator/core/core.h"
#include "common/model/model.h"

#include <gmock/gmock.h>

#include <cmath>
#include <map>

#include "common/base/testing/status_matchers.h"
#include "common/model/leader_term.h"
#include "tests/unit/worker/coordinator/core/core_fixture.h"
#include "tests/unit/worker/coordinator/core/sim_world.h"

namespace medley::worker {
namespace {

using base::IsOkAndHolds;
using base::StatusIs;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

TEST_F(CoreTest, LeasesAtMostEightStepsAhead) {
  Start();
  Ready(0);
  EXPECT_EQ(Seen().phase(), job::v1::JOB_PHASE_TRAINING);
  ASSERT_TRUE(sent_["job-server-0"].back().has_lease());
  EXPECT_EQ(sent_["job-server-0"].back().lease().steps_size(), 8);
  Progress(1, 0.5);
  EXPECT_EQ(core_.ledger()->committed(), 1);
  EXPECT_LE(core_.ledger()->leased() - core_.ledger()->committed(), 8);
  EXPECT_DOUBLE_EQ(Seen().loss(), 0.5);
}

TEST_F(CoreTest, PlansAreOrderedByTheirGeneration) {
  ASSERT_THAT(core_.ApplyPlan(sim::MakePlan(3, 1, 1, 1, "a"), Now()), IsOkAndHolds(3));
  EXPECT_THAT(core_.ApplyPlan(sim::MakePlan(3, 1, 1, 1, "a"), Now()), IsOkAndHolds(3));
  EXPECT_THAT(core_.ApplyPlan(sim::MakePlan(2, 1, 1, 1, "a"), Now()),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("plan 2 is older than plan 3")));
  EXPECT_THAT(core_.ApplyPlan(sim::MakePlan(0, 1, 1, 1, "a"), Now()), StatusIs(absl::StatusCode::kInvalidArgument));
}

// A recovery under the old plan has a higher generation than the accepted new plan. The operator must not conclude from
// it that the new plan is in force.
TEST_F(CoreTest, AnAcceptedPlanIsAnnouncedUntilItIsInForce) {
  Start();
  Ready(0);
  EXPECT_EQ(Seen().next_generation(), 0);
  ASSERT_THAT(core_.ApplyPlan(sim::MakePlan(2, 1, 1, 1, "b"), Now()), IsOkAndHolds(2));
  EXPECT_EQ(Seen().plan_generation(), 1);
  EXPECT_EQ(Seen().next_generation(), 2);
  EXPECT_THAT(Seen().missing_members(), ElementsAre("job-0-b-0", "job-1-b-0"));
}

TEST_F(CoreTest, MissingMembersAreNamedAndWaitedForBoundedly) {
  ASSERT_TRUE(core_.ApplyPlan(sim::MakePlan(1, 1, 1, 1, "a"), Now()).ok());
  EXPECT_THAT(Seen().missing_members(), ElementsAre("job-0-a-0", "job-1-a-0", "job-server-0"));
  Advance(base::seconds(599));
  EXPECT_FALSE(core_.over());
  Advance(base::seconds(2));
  EXPECT_EQ(exit_code_, 1);
  EXPECT_THAT(Seen().message(), HasSubstr("job-1-a-0"));
  EXPECT_TRUE(Seen().retryable());
}

TEST_F(CoreTest, RowsThatDisagreeFailTheJobByName) {
  Start({{"job-1-a-0", 99}});
  EXPECT_EQ(exit_code_, 2);
  EXPECT_FALSE(Seen().retryable());
  EXPECT_THAT(Seen().message(),
              HasSubstr("job-1-a-0: the training data differs: this member read 99 rows, job-0-a-0 read 100"));
}

TEST_F(CoreTest, AStateWithOtherSamplesFailsTheJob) {
  Start();
  Ready(7);
  EXPECT_EQ(exit_code_, 2);
  EXPECT_THAT(Seen().message(), HasSubstr("with 7 samples, the ledger at step 0 with 0"));
}

TEST_F(CoreTest, ANonFiniteLossFailsTheJob) {
  Start();
  Ready(0);
  Progress(1, 0.5);
  Progress(2, std::nan(""));
  EXPECT_EQ(exit_code_, 2);
  EXPECT_EQ(Seen().message(), "diverged at step 2");
}

constexpr char kBroken[] = "allreduce in group stages: job-1-a-0: the connection broke";

// The log has the transport's error; the observation only says which member's exchange broke.
TEST_F(CoreTest, ABrokenExchangeHasItsOwnMessage) {
  Start();
  Ready(0);
  Progress(1, 0.5);
  Fault("job-0-a-0", std::string("send to job-1-a-0 in group stages: ") + kBroken, job::v1::FAULT_KIND_EXCHANGE);
  EXPECT_EQ(Seen().message(), "the exchange of job-0-a-0 with other members broke at step 2");
  EXPECT_THAT(logs_, Contains(HasSubstr(kBroken)));
  Recover(1);
  ASSERT_EQ(Seen().switches_size(), 1);
  const job::v1::SwitchRecord record = Seen().switches(0);
  EXPECT_EQ(record.reason(), "the exchange of job-0-a-0 with other members broke at step 2");
  EXPECT_EQ(record.cause(), job::v1::SWITCH_CAUSE_EXCHANGE_BROKEN);
  EXPECT_EQ(record.member(), "job-0-a-0");
  EXPECT_TRUE(record.recovery());
}

// The peers of a killed process notice its loss before its session ends.
TEST_F(CoreTest, ALostMemberIsTheCauseOfABrokenExchange) {
  Start();
  Ready(0);
  Progress(1, 0.5);
  Fault("job-0-a-0", kBroken, job::v1::FAULT_KIND_EXCHANGE);
  core_.OnLost("job-1-a-0", "i-job-1-a-0", Now());
  EXPECT_THAT(Seen().message(), StartsWith("job-1-a-0 was lost"));
  Fault("job-server-0", kBroken, job::v1::FAULT_KIND_EXCHANGE);
  EXPECT_THAT(Seen().message(), StartsWith("job-1-a-0 was lost"));
}

TEST_F(CoreTest, AnotherFaultSaysWhatTheMemberSays) {
  Start();
  Ready(0);
  Progress(1, 0.5);
  Fault("job-0-a-0", "write /ck/step-1: No space left on device", job::v1::FAULT_KIND_UNSPECIFIED);
  Recover(1);
  ASSERT_EQ(Seen().switches_size(), 1);
  EXPECT_EQ(Seen().switches(0).reason(), "job-0-a-0: write /ck/step-1: No space left on device");
  EXPECT_EQ(Seen().switches(0).cause(), job::v1::SWITCH_CAUSE_MEMBER_FAULT);
}

TEST_F(CoreTest, APlanThatAMemberCanNeverRunIsGivenUpAndTheJobTrainsOn) {
  PrepareSecondPlan();
  PermanentFault("job-0-b-0", 2);
  EXPECT_FALSE(core_.over());
  EXPECT_EQ(Seen().refused().generation(), 2);
  EXPECT_EQ(Seen().refused().member(), "job-0-b-0");
  EXPECT_EQ(Seen().refused().message(), "file:///data/train.csv: no such file");
  EXPECT_EQ(Seen().phase(), job::v1::JOB_PHASE_TRAINING);
  EXPECT_EQ(Seen().next_generation(), 0);
  EXPECT_TRUE(sent_["job-1-b-0"].back().has_abandon());
  PermanentFault("job-1-b-0", 2);  // the other member finds the same
  EXPECT_FALSE(core_.over());
  Progress(2, 0.5);
  EXPECT_EQ(core_.ledger()->committed(), 2);
  EXPECT_THAT(core_.ApplyPlan(second_, Now()),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("plan 2 was given up, because job-0-b-0")));
  ASSERT_THAT(core_.ApplyPlan(sim::MakePlan(3, 1, 1, 1, "a"), Now()),
              testing::Not(StatusIs(absl::StatusCode::kFailedPrecondition)));
  EXPECT_FALSE(Seen().has_refused());
}

TEST_F(CoreTest, OtherRowsOfANewMemberDoNotEndTheJob) {
  PrepareSecondPlan();
  for (const char* member : {"job-0-a-0", "job-1-a-0", "job-server-0", "job-1-b-0", "job-0-b-0"}) {
    job::v1::SessionRequest message;
    message.mutable_warmed()->set_generation(2);
    message.mutable_warmed()->set_rows(std::string(member) == "job-0-b-0" ? 99 : 100);
    Say(member, message);
  }
  EXPECT_FALSE(core_.over());
  EXPECT_EQ(Seen().refused().member(), "job-0-b-0");
  EXPECT_THAT(Seen().refused().message(), HasSubstr("this member read 99 rows, earlier trainers read 100"));
}

// A pod that was replaced came up on a node without the data.
TEST_F(CoreTest, AReplacementThatCanNeverRunIsReleasedAndTheOthersTrainOn) {
  plan_ = sim::MakePlan(1, 2, 1, 1, "a");
  ASSERT_THAT(core_.ApplyPlan(plan_, Now()), IsOkAndHolds(1));
  for (const job::v1::MemberSlot& slot : plan_.slots()) {
    if (slot.member() != "job-0-a-1") Hello(slot);
  }
  Advance(base::seconds(600));  // it starts without the member that does not come
  const int64_t first = Seen().next_generation();
  for (const job::v1::MemberSlot& slot : plan_.slots()) {
    job::v1::SessionRequest message;
    message.mutable_warmed()->set_generation(first);
    message.mutable_warmed()->set_rows(100);
    if (slot.member() != "job-0-a-1") Say(slot.member(), message);
  }
  for (const job::v1::MemberSlot& slot : plan_.slots()) {
    job::v1::SessionRequest message;
    message.mutable_ready()->set_generation(first);
    if (slot.member() != "job-0-a-1") Say(slot.member(), message);
  }
  ASSERT_EQ(Seen().phase(), job::v1::JOB_PHASE_TRAINING) << Seen().DebugString();
  for (const job::v1::MemberSlot& slot : plan_.slots()) {
    if (slot.member() == "job-0-a-1") Hello(slot);
  }
  Advance(base::seconds(1));
  ASSERT_GT(Seen().next_generation(), first);
  PermanentFault("job-0-a-1", Seen().next_generation());
  EXPECT_FALSE(core_.over());
  EXPECT_FALSE(Seen().has_refused());  // the plan itself runs
  ASSERT_TRUE(sent_["job-0-a-1"].back().has_release());
  EXPECT_EQ(sent_["job-0-a-1"].back().release().exit_code(), 1);
  for (int i = 0; i < 60; ++i) Advance(base::seconds(1));
  EXPECT_EQ(Seen().next_generation(), 0);  // it is not prepared again
}

TEST_F(CoreTest, APermanentFaultOfTheGenerationInForceEndsTheJob) {
  PrepareSecondPlan();
  PermanentFault("job-0-a-0", 1);
  EXPECT_EQ(exit_code_, 2);
  EXPECT_EQ(Seen().message(), "job-0-a-0: file:///data/train.csv: no such file");
}

TEST_F(CoreTest, MoneyFollowsUnitsAndPrices) {
  Start();
  Ready(0);
  const double before = Seen().usd_spent();
  Advance(base::seconds(60));  // two trainers of pool a at 1 USD/h
  EXPECT_NEAR(Seen().usd_spent() - before, 2.0 / 60, 1e-9);
  job::v1::ApplyPlanRequest expensive = plan_;
  (*expensive.mutable_usd_per_unit_hour())["a"] = 3;
  ASSERT_TRUE(core_.ApplyPlan(expensive, Now()).ok());
  Advance(base::seconds(60));
  EXPECT_NEAR(Seen().usd_spent() - before, 8.0 / 60, 1e-9);
}

TEST_F(CoreTest, ThroughputIsMeasured) {
  Start();
  Ready(0);
  for (int step = 1; step <= 15; ++step) Progress(step, 0.5, 0.1);
  EXPECT_NEAR(Seen().throughput(), 100, 1e-6);
}

TEST_F(CoreTest, AnEvaluationTakesAsLongAsItMakesProgress) {
  Start();
  Ready(0);
  for (int64_t step = 1; step <= 20; ++step) Progress(step, 0.5, 0.1);
  ASSERT_EQ(Seen().phase(), job::v1::JOB_PHASE_EVALUATING);
  const std::string member = plan_.slots(0).member();
  const auto report = [&](int64_t generation, int64_t step) {
    job::v1::SessionRequest message;
    message.mutable_evaluating()->set_generation(generation);
    message.mutable_evaluating()->set_step(step);
    Say(member, message);
  };
  for (int hour = 0; hour < 24; ++hour) {  // much longer than the timeout
    for (int i = 0; i < 12; ++i) {
      Advance(base::seconds(300));
      report(1, 20);
    }
    ASSERT_EQ(Seen().phase(), job::v1::JOB_PHASE_EVALUATING);
  }
  Advance(base::seconds(300));
  report(1, 19);  // of an earlier order
  report(7, 20);
  Advance(base::seconds(300));
  EXPECT_EQ(Seen().phase(), job::v1::JOB_PHASE_RECOVERING);
  EXPECT_TRUE(sent_[member].back().has_halt());
  EXPECT_THAT(logs_, testing::Contains(HasSubstr("the evaluation made no progress for 600 s; unfinished members: ")));
}

std::shared_ptr<const model::Model> ModelOf(std::vector<model::Layer> layers) {
  return std::make_shared<const model::Model>(model::Model{.layers = std::move(layers)});
}

// The sum's first input skips the second stage.
TEST_F(CoreTest, APlanThatDoesNotCompileIsRefused) {
  CoreOptions options = Options();
  options.model = ModelOf({{.name = "a", .weight_bytes = 4},
                           {.name = "b", .weight_bytes = 4},
                           {.name = "sum", .kind = "ADD", .inputs = {0, 1}}});
  CoordinatorCore core(options, Now(), std::nullopt);
  job::v1::ApplyPlanRequest request;
  request.mutable_plan()->set_generation(1);
  for (int s = 0; s < 3; ++s) {
    plan::v1::Stage& stage = *request.mutable_plan()->add_stages();
    stage.add_operations()->set_first(s);
    stage.mutable_operations(0)->set_end(s + 1);
    stage.add_groups()->set_pool("a");
    stage.mutable_groups(0)->set_units(1);
    stage.mutable_groups(0)->set_share(1);
    job::v1::MemberSlot& slot = *request.add_slots();
    slot.set_member("t" + std::to_string(s));
    slot.set_role(job::v1::MEMBER_ROLE_TRAINER);
    slot.set_pool("a");
    slot.set_stage(s);
  }
  EXPECT_THAT(core.ApplyPlan(request, Now()).status(), IsOk());
  request.mutable_plan()->set_generation(2);
  request.mutable_plan()->mutable_schedule()->set_kind(plan::v1::SCHEDULE_KIND_ASYNC_1F1B);
  EXPECT_THAT(
      core.ApplyPlan(request, Now()).status(),
      StatusIs(absl::StatusCode::kUnimplemented, "plan: schedule.kind: ASYNC_1F1B needs stages that form a chain"));
  EXPECT_EQ(core.Observe(Now()).missing_members_size(), 3) << "the first plan is in force";
}

TEST_F(CoreTest, APlanThatTheRuntimeCannotExecuteIsRefused) {
  job::v1::ApplyPlanRequest request = sim::MakePlan(1, 1, 1, 1, "a");
  request.mutable_plan()->mutable_schedule()->set_kind(plan::v1::SCHEDULE_KIND_ASYNC_1F1B);
  EXPECT_THAT(core_.ApplyPlan(request, Now()).status(),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("plan.schedule.kind: ")));
  request = sim::MakePlan(1, 1, 1, 1, "a");
  request.mutable_plan()->set_job_uid("another");
  EXPECT_THAT(core_.ApplyPlan(request, Now()).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("plan.jobUid: ")));
  CoreOptions options = Options();
  options.model = ModelOf({{.name = "fc", .weight_bytes = 4}, {.name = "loss", .weight_bytes = 4}});  // without tables
  CoordinatorCore core(options, Now(), std::nullopt);
  EXPECT_THAT(core.ApplyPlan(sim::MakePlan(1, 1, 1, 1, "a"), Now()).status(),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("plan.stages[0].syncs: ")));
  EXPECT_TRUE(core_.TakeCommands().empty());
}

TEST_F(CoreTest, APlanThatWouldMoveRowsBetweenTrainersAndServersIsRefusedWithoutCheckpoints) {
  CoreOptions options = Options();
  options.model = ModelOf({{.name = "embedding", .weight_bytes = 4, .sparse = true}});
  CoordinatorCore core(options, Now(), std::nullopt);
  job::v1::ApplyPlanRequest request = sim::MakePlan(1, 1, 1, 0, "a");
  request.mutable_plan()->mutable_stages()->DeleteSubrange(1, request.plan().stages_size() - 1);
  request.mutable_plan()->mutable_stages(0)->mutable_operations(0)->set_end(1);
  request.mutable_plan()->mutable_stages(0)->clear_syncs();
  request.mutable_plan()->clear_servers();
  while (request.slots_size() > 1) request.mutable_slots()->RemoveLast();
  ASSERT_THAT(core.ApplyPlan(request, Now()).status(), IsOk());
  request.mutable_plan()->set_generation(2);
  plan::v1::OperationSync& sync = *request.mutable_plan()->mutable_stages(0)->add_syncs();
  sync.add_operations()->set_end(1);
  sync.mutable_sync()->set_kind(plan::v1::SYNC_KIND_PARAMETER_SERVER);
  request.mutable_plan()->mutable_servers()->set_pool("a");
  request.mutable_plan()->mutable_servers()->set_units(1);
  job::v1::MemberSlot& slot = *request.add_slots();
  slot.set_member("server");
  slot.set_role(job::v1::MEMBER_ROLE_SERVER);
  slot.set_pool("a");
  EXPECT_THAT(core.ApplyPlan(request, Now()).status(),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("plan.servers: a job whose embedding tables are at a trainer and that writes no "
                                 "checkpoints cannot train with a plan whose tables are on parameter servers")));
  EXPECT_EQ(core.Observe(Now()).missing_members_size(), 1) << "the first plan is in force";
}

// G7: requests of an earlier leader change nothing.
TEST_F(CoreTest, G7_AnOlderLeaderIsRefused) {
  job::v1::ApplyPlanRequest plan = sim::MakePlan(1, 1, 1, 1, "a");
  plan.set_leader_term(4);
  ASSERT_THAT(core_.ApplyPlan(plan, Now()), IsOkAndHolds(1));
  EXPECT_EQ(Seen().leader_term(), 4);
  Take();
  job::v1::ApplyPlanRequest late = sim::MakePlan(2, 2, 2, 1, "b");
  late.set_leader_term(3);
  const absl::Status refused = core_.ApplyPlan(late, Now()).status();
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("leader term 3 is stale")));
  EXPECT_EQ(model::NewerTerm(refused), 4);
  EXPECT_EQ(model::NewerTerm(core_.Drain({"job-0-a-0"}, 3, Now())), 4);
  EXPECT_EQ(model::NewerTerm(core_.Suspend("late", 3, Now())), 4);
  EXPECT_TRUE(core_.TakeCommands().empty());
  EXPECT_EQ(Seen().phase(), job::v1::JOB_PHASE_WAITING);
  EXPECT_EQ(Seen().leader_term(), 4);
  // The same leader and a later one are served. An older plan is a different error from an earlier leader.
  ASSERT_THAT(core_.ApplyPlan(plan, Now()), IsOkAndHolds(1));
  late.set_leader_term(5);
  ASSERT_THAT(core_.ApplyPlan(late, Now()), IsOkAndHolds(2));
  plan.set_leader_term(5);
  EXPECT_FALSE(model::NewerTerm(core_.ApplyPlan(plan, Now()).status()).has_value());
}

TEST_F(CoreTest, G7_TheTermIsJournaledBeforeAnythingElseAndOutlivesTheCoordinator) {
  ASSERT_TRUE(core_.ApplyPlan(sim::MakePlan(1, 1, 1, 1, "a"), Now()).ok());
  Take();
  ASSERT_TRUE(core_.Drain({}, 7, Now()).ok());
  const std::vector<Command> commands = core_.TakeCommands();
  std::optional<job::v1::CoordinatorState> journal;
  for (const Command& command : commands) {
    EXPECT_FALSE(std::holds_alternative<SendCommand>(command));
    if (const auto* written = std::get_if<JournalCommand>(&command)) journal = written->state;
  }
  ASSERT_TRUE(journal.has_value());
  EXPECT_EQ(journal->leader_term(), 7);
  CoordinatorCore next(Options(), Now(), journal);
  EXPECT_EQ(model::NewerTerm(next.Drain({}, 6, Now())), 7);
}

TEST(RosterTest, SharesFollowTheConnectedUnits) {
  job::v1::ApplyPlanRequest request = sim::MakePlan(1, 2, 1, 1, "a");
  plan::v1::Group& slow = *request.mutable_plan()->mutable_stages(0)->add_groups();
  slow.set_pool("b");
  slow.set_units(1);
  slow.set_share(0.2);
  request.mutable_plan()->mutable_stages(0)->mutable_groups(0)->set_share(0.8);
  job::v1::MemberSlot& slot = *request.add_slots();
  slot.set_member("job-b");
  slot.set_role(job::v1::MEMBER_ROLE_TRAINER);
  slot.set_pool("b");
  slot.set_index(2);
  ASSERT_TRUE(ValidateApply(request).ok()) << ValidateApply(request).message();
  std::map<std::string, job::v1::Hello> there;
  for (const job::v1::MemberSlot& s : request.slots()) {
    if (s.member() == "job-0-a-0") continue;
    there[s.member()].set_role(s.role());
    there[s.member()].set_pool(s.pool());
  }
  const RosterFit fit = FitPlan(request, [&](const std::string& name) -> const job::v1::Hello* {
    const auto found = there.find(name);
    return found == there.end() ? nullptr : &found->second;
  });
  EXPECT_TRUE(fit.covers);
  EXPECT_THAT(fit.missing, ElementsAre("job-0-a-0"));
  EXPECT_NEAR(fit.plan.stages(0).groups(0).share(), 0.4 / 0.6, 1e-12);
  EXPECT_NEAR(fit.plan.stages(0).groups(1).share(), 0.2 / 0.6, 1e-12);
  EXPECT_EQ(fit.peers[0].slot().index(), 0);
  EXPECT_EQ(fit.peers[1].slot().index(), 1);
  EXPECT_TRUE(StateSurvives(request.plan(), fit.peers, {"job-1-a-0", "job-server-0"}));
  EXPECT_FALSE(StateSurvives(request.plan(), fit.peers, {"job-b", "job-server-0"}));
  EXPECT_FALSE(StateSurvives(request.plan(), fit.peers, {"job-1-a-0"}));
}

}  // namespace
}  // namespace medley::worker
