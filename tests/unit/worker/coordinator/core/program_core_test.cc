// Tests what the state machine does for jobs of programs, whose members hold no state after a halt.
#include "tests/unit/worker/coordinator/core/checkpoint_fixture.h"

namespace medley::worker {
namespace {

using base::IsOk;
using testing::HasSubstr;

class ProgramCoreTest : public CheckpointCoreTest {
 protected:
  // A program failed in `member`, and all agents have ended it.
  void FailAndHalt(const std::string& member) {
    job::v1::SessionRequest fault;
    fault.mutable_fault()->set_generation(core_->active_generation());
    fault.mutable_fault()->set_step(13);
    fault.mutable_fault()->set_message("rank 1 was killed by SIGKILL");
    Say(member, fault);
    ASSERT_GT(halts_, 0);
    const int64_t generation = core_->active_generation();
    All([&](auto& message) {
      message.mutable_halted()->set_generation(generation);
      message.mutable_halted()->set_applied_step(13);
      message.mutable_halted()->set_holds_nothing(true);
    });
  }
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
  const int64_t generation = prepare_->generation();
  All([&](auto& message) {
    message.mutable_warmed()->set_generation(generation);
    message.mutable_warmed()->set_rows(kRows);
  });
  All([&](auto& message) {
    message.mutable_ready()->set_generation(generation);
    message.mutable_ready()->set_step(12);
    message.mutable_ready()->set_state_samples(120);
  });
  const job::v1::Observation seen = Seen();
  EXPECT_EQ(seen.phase(), job::v1::JOB_PHASE_TRAINING);
  ASSERT_GT(seen.switches_size(), 0);
  const job::v1::SwitchRecord& record = *seen.switches().rbegin();
  EXPECT_TRUE(record.recovery());
  EXPECT_EQ(record.lost_steps(), 1);
  EXPECT_THAT(record.reason(), HasSubstr("rank 1 was killed by SIGKILL"));
}

// Members that keep their state continue from it, as the same messages without the field do.
TEST_F(ProgramCoreTest, OtherMembersContinueFromTheirState) {
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
