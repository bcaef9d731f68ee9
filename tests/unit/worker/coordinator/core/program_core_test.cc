// Tests what the state machine does for jobs of programs, whose members hold no state after a halt.
#include "tests/unit/worker/coordinator/core/checkpoint_fixture.h"

namespace medley::worker {
namespace {

using base::IsOk;
using testing::HasSubstr;

class ProgramCoreTest : public CheckpointCoreTest {
 protected:
  ProgramCoreTest() { is_program_ = true; }

  // A program failed in `member`, and all agents have ended it.
  void FailAndHalt(const std::string& member, int64_t applied = 13) {
    job::v1::SessionRequest fault;
    fault.mutable_fault()->set_generation(core_->active_generation());
    fault.mutable_fault()->set_step(13);
    fault.mutable_fault()->set_message("rank 1 was killed by SIGKILL");
    Say(member, fault);
    ASSERT_GT(halts_, 0);
    const int64_t generation = core_->active_generation();
    All([&](auto& message) {
      message.mutable_halted()->set_generation(generation);
      message.mutable_halted()->set_applied_step(applied);
      message.mutable_halted()->set_holds_nothing(true);
    });
  }
  // All agents begin the generation that is being prepared, from `step`, `later` after they have prepared it.
  void Begin(int64_t step, base::nanoseconds later) {
    const int64_t generation = prepare_->generation();
    All([&](auto& message) {
      message.mutable_warmed()->set_generation(generation);
      message.mutable_warmed()->set_rows(kRows);
    });
    Advance(later);
    All([&](auto& message) {
      message.mutable_ready()->set_generation(generation);
      message.mutable_ready()->set_step(step);
      message.mutable_ready()->set_state_samples(step * 10);
    });
    ASSERT_EQ(core_->active_generation(), generation);
  }
  void Leave() {
    job::v1::SessionRequest leaving;
    leaving.mutable_leaving();
    Say("job-0-a-0", leaving);
  }
  void TrainTo(int64_t step) {
    while (step_ < step) Progress(++step_);
  }
  // All make the step of the checkpoint that is due, and it becomes complete.
  void Save() {
    ASSERT_TRUE(order_);
    TrainTo(order_->step());
    Checkpointed();
    core_->OnManifestWritten(order_->folder(), absl::OkStatus(), Now());
    Take();
  }
  void FailAndFind(int64_t saved) {
    FailAndHalt("job-0-a-0");
    Advance(base::seconds(2));
    Answer(Found(saved));
  }

  int64_t step_ = 10;  // TrainTo
};

TEST_F(ProgramCoreTest, AFailedProgramContinuesFromItsNewestSave) {
  Train();
  for (int64_t step = 11; step <= 13; ++step) Progress(step);
  const size_t searches = searches_.size();
  FailAndHalt("job-0-a-0");
  Advance(base::seconds(2));
  ASSERT_EQ(searches_.size(), searches + 1);  // although every member is connected
  Answer(Found(12));
  ASSERT_EQ(prepare_->origin(), job::v1::STATE_ORIGIN_CHECKPOINT);
  Begin(12, base::seconds(1));
  Progress(13, 12);
  const job::v1::Observation seen = Seen();
  EXPECT_EQ(seen.phase(), job::v1::JOB_PHASE_TRAINING);
  ASSERT_GT(seen.switches_size(), 0);
  const job::v1::SwitchRecord& record = *seen.switches().rbegin();
  EXPECT_TRUE(record.recovery());
  EXPECT_EQ(record.lost_steps(), 1);
  EXPECT_THAT(record.reason(), HasSubstr("rank 1 was killed by SIGKILL"));
}

// Nobody trains while the program starts, so the pause lasts until its first step.
TEST_F(ProgramCoreTest, ASwitchLastsUntilTheFirstStep) {
  Train();
  Progress(11);
  const int before = Seen().switches_size();
  FailAndFind(10);  // 2 s
  Begin(10, base::seconds(3));
  Advance(base::seconds(7));
  EXPECT_EQ(Seen().switches_size(), before) << "the program has made no step";
  Progress(11, 10);
  ASSERT_EQ(Seen().switches_size(), before + 1);
  const job::v1::SwitchRecord record = *Seen().switches().rbegin();
  EXPECT_DOUBLE_EQ(record.pause_seconds(), 12);
  EXPECT_DOUBLE_EQ(record.start_seconds(), 7);
  Advance(base::seconds(5));
  Progress(12);
  EXPECT_EQ(Seen().switches_size(), before + 1);
}

// The program says by its first report from where it continues, whatever Medley knows of its saves.
TEST_F(ProgramCoreTest, LostStepsAreThoseThatTheProgramMakesAgain) {
  Train();
  for (int64_t step = 11; step <= 13; ++step) Progress(step);
  FailAndFind(10);
  Begin(10, base::seconds(1));
  Progress(11, 12);  // it has saved step 12 in its own rhythm
  EXPECT_EQ(Seen().switches().rbegin()->lost_steps(), 1);
  FailAndFind(10);
  Begin(10, base::seconds(1));
  Progress(11, 4);  // and an older program would go back further than Medley's record
  EXPECT_EQ(Seen().switches().rbegin()->lost_steps(), 9);
}

TEST_F(ProgramCoreTest, ASwitchThatIsFollowedByNoStepHasAPauseToo) {
  Train();
  for (int64_t step = 11; step <= 13; ++step) Progress(step);
  const int before = Seen().switches_size();
  FailAndFind(10);
  Begin(10, base::seconds(1));
  Advance(base::seconds(4));
  FailAndFind(10);
  Begin(10, base::seconds(1));
  ASSERT_EQ(Seen().switches_size(), before + 1);
  EXPECT_DOUBLE_EQ(Seen().switches(before).pause_seconds(), 2 + 1 + 4 + 2 + 1);
  EXPECT_EQ(Seen().switches(before).lost_steps(), 0);
  Advance(base::seconds(6));
  Progress(11, 10);
  ASSERT_EQ(Seen().switches_size(), before + 2);
  EXPECT_DOUBLE_EQ(Seen().switches(before + 1).pause_seconds(), 6);
  EXPECT_EQ(Seen().switches(before + 1).lost_steps(), 3);
}

// Members that get SIGTERM stay for some time. A replacement may come, so the program trains on for a part of it.
TEST_F(ProgramCoreTest, AProgramStandsStillAfterItsLastSaveBeforeItLosesAMember) {
  Train();
  Leave();
  Save();
  EXPECT_EQ(drained_, 0);
  Advance(base::seconds(11));
  Save();  // the usual one
  TrainTo(step_ + 5);
  EXPECT_EQ(drained_, 0) << "a replacement may come";
  EXPECT_EQ(halts_, 0);
  order_.reset();
  Advance(base::seconds(1));
  TrainTo(step_ + 1);
  ASSERT_TRUE(order_);
  EXPECT_EQ(drained_, order_->step());
  Save();
  EXPECT_GT(halts_, 0);
  EXPECT_THAT(released_, testing::ElementsAre("job-0-a-0"));
  EXPECT_THAT(logs_, testing::Contains(HasSubstr("job-0-a-0 leaves")));
}

TEST_F(ProgramCoreTest, AProgramThatCouldNotSaveTrainsOnAndIsAskedAgain) {
  Train();
  Leave();
  Save();
  order_.reset();
  Advance(base::seconds(12));
  TrainTo(step_ + 1);
  ASSERT_TRUE(order_);
  EXPECT_EQ(drained_, order_->step());
  CheckpointFault("the program did not write its state");
  EXPECT_EQ(halts_, 0);
  order_.reset();
  TrainTo(step_ + 1);
  EXPECT_FALSE(order_) << "not at once";
  Advance(base::seconds(1));
  TrainTo(step_ + 10);
  ASSERT_TRUE(order_);
  EXPECT_EQ(drained_, order_->step());
}

// Agents of units that follow report a step as soon as it is leased: that is no step that was made.
TEST_F(ProgramCoreTest, StepsThatOnlyFollowersHaveReportedAreNotLost) {
  Train();
  Progress(11);
  for (int64_t step = 12; step <= 14; ++step) {
    job::v1::SessionRequest message;
    message.mutable_progress()->set_generation(core_->active_generation());
    message.mutable_progress()->set_step(step);
    Say("job-1-a-0", message);
  }
  FailAndHalt("job-0-a-0", 0);
  Advance(base::seconds(2));
  Answer(Found(10));
  Begin(10, base::seconds(1));
  Progress(11, 10);
  EXPECT_EQ(Seen().switches().rbegin()->lost_steps(), 1);
}

class ModelCoreTest : public ProgramCoreTest {
 protected:
  ModelCoreTest() { is_program_ = false; }
};

TEST_F(ModelCoreTest, OtherMembersTrainUntilTheLossOfOneThatLeaves) {
  Train();
  Leave();
  Save();
  Advance(base::seconds(12));
  TrainTo(step_ + 20);
  EXPECT_EQ(drained_, 0);
  EXPECT_EQ(halts_, 0);
}

// Members that keep their state continue from it, as the same messages without the field do.
TEST_F(ModelCoreTest, OtherMembersContinueFromTheirState) {
  Train();
  for (int64_t step = 11; step <= 13; ++step) Progress(step);
  const size_t searches = searches_.size();
  job::v1::SessionRequest fault;
  fault.mutable_fault()->set_generation(core_->active_generation());
  fault.mutable_fault()->set_step(13);
  fault.mutable_fault()->set_message("a queue was full");
  Say("job-0-a-0", fault);
  const int64_t generation = core_->active_generation();
  All([&](auto& message) {
    message.mutable_halted()->set_generation(generation);
    message.mutable_halted()->set_applied_step(13);
    message.mutable_halted()->set_undo_to_step(12);
  });
  Advance(base::seconds(2));
  EXPECT_EQ(searches_.size(), searches);
  EXPECT_EQ(prepare_->origin(), job::v1::STATE_ORIGIN_PEERS);
}

// Whether a job starts with three of the four members of its plan when it has waited for the fourth.
bool StartsWithThree(const std::vector<int>& legal_units) {
  CoreOptions options;
  options.batch_size = 10;
  options.legal_units = legal_units;
  options.member_wait = base::seconds(60);
  base::nanoseconds time{base::seconds(100)};
  const auto now = [&] { return Instant{base::SteadyTime(time), base::WallTime(base::seconds(1'700'000'000))}; };
  CoordinatorCore core(options, now(), std::nullopt);
  const job::v1::ApplyPlanRequest plan = sim::MakePlan(1, 1, 2, 1, "a");
  EXPECT_EQ(plan.slots_size(), 4);
  EXPECT_THAT(core.ApplyPlan(plan, now()), IsOk());
  for (const job::v1::MemberSlot& slot : plan.slots()) {
    if (slot.stage() == 1 && slot.index() == 1) continue;
    job::v1::SessionRequest message;
    message.mutable_hello()->set_member(slot.member());
    message.mutable_hello()->set_role(slot.role());
    message.mutable_hello()->set_pool(slot.pool());
    message.mutable_hello()->set_instance("i-" + slot.member());
    core.OnMessage(slot.member(), "i-" + slot.member(), message, now());
  }
  time += base::seconds(60);
  core.Tick(now());
  for (Command& command : core.TakeCommands()) {
    if (auto* send = std::get_if<SendCommand>(&command); send != nullptr && send->message.has_prepare()) return true;
  }
  return false;
}

TEST(ProgramSizesTest, OnlyLegalNumbersOfUnitsStart) {
  EXPECT_TRUE(StartsWithThree({}));
  EXPECT_TRUE(StartsWithThree({1, 3}));
  EXPECT_FALSE(StartsWithThree({2, 4}));
}

}  // namespace
}  // namespace medley::worker
