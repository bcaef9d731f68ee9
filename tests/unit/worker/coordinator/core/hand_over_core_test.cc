// Tests how one state machine hands the job over and another takes it over.
#include <gmock/gmock.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "common/base/testing/status_matchers.h"
#include "tests/unit/worker/coordinator/core/core_fixture.h"
#include "tests/unit/worker/coordinator/core/sim_world.h"

namespace medley::worker {
namespace {

using base::StatusIs;

class HandOverTest : public CoreTest {
 protected:
  // The coordinator leases 8 steps ahead; `applied` of them are applied by all.
  void TrainTo(int64_t applied) {
    Start();
    Ready(0);
    for (int64_t step = 1; step <= applied; ++step) Progress(step, 0.5);
  }
  job::v1::HandOverRequest Successor(int64_t term = 2) const {
    job::v1::HandOverRequest to;
    to.set_term(term);
    to.set_address("10.0.0.2:7070");
    return to;
  }
  // The last record among the commands of `core`.
  static std::optional<job::v1::CoordinatorState> LastRecord(CoordinatorCore& core) {
    std::optional<job::v1::CoordinatorState> last;
    for (const Command& command : core.TakeCommands()) {
      if (const auto* record = std::get_if<JournalCommand>(&command)) last = record->state;
    }
    return last;
  }
  // All members apply the step; the commands that follow are not taken.
  void ApplyLast(int64_t step) {
    for (const job::v1::MemberSlot& slot : plan_.slots()) {
      job::v1::SessionRequest message;
      message.mutable_progress()->set_generation(1);
      message.mutable_progress()->set_step(step);
      core_.OnMessage(slot.member(), "i-" + slot.member(), message, Now());
    }
  }
  int64_t Leased() const { return core_.ledger()->leased(); }
  // The last record of a coordinator that handed a job of 20 steps over. Sets plan_.
  job::v1::CoordinatorState HandedOver(int64_t committed) {
    plan_ = sim::MakePlan(1, 1, 1, 1, "a");
    job::v1::CoordinatorState state;
    state.set_last_generation(1);
    state.set_from_generation(1);
    *state.mutable_desired() = *state.mutable_active_plan() = *state.mutable_first_plan() = plan_;
    state.mutable_active()->set_generation(1);
    *state.mutable_active()->mutable_plan() = plan_.plan();
    for (const job::v1::MemberSlot& slot : plan_.slots()) {
      job::v1::Peer& peer = *state.mutable_active()->add_peers();
      *peer.mutable_slot() = slot;
      peer.set_instance("i-" + slot.member());
    }
    state.mutable_ledger()->set_rows(100);
    state.mutable_ledger()->set_epochs(2);
    state.mutable_ledger()->set_batch_size(10);
    state.mutable_ledger()->set_committed_step(committed);
    state.mutable_handed_over()->set_at_boundary(true);
    return state;
  }
  // A member of generation 1 comes to the other coordinator.
  void Return(CoordinatorCore& core, const job::v1::MemberSlot& slot, int64_t held_step) const {
    job::v1::SessionRequest message;
    job::v1::Hello& hello = *message.mutable_hello();
    hello.set_member(slot.member());
    hello.set_role(slot.role());
    hello.set_pool(slot.pool());
    hello.set_instance("i-" + slot.member());
    hello.set_held_generation(1);
    hello.set_held_step(held_step);
    core.OnMessage(slot.member(), hello.instance(), message, Now());
  }
};

TEST_F(HandOverTest, WaitsForTheOpenStepsAndLeasesNoOther) {
  TrainTo(1);
  const int64_t leased = Leased();
  ASSERT_GT(leased, 1);
  ASSERT_THAT(core_.HandOver(Successor(), Now()), base::IsOk());
  EXPECT_FALSE(core_.handed_over());
  for (int64_t step = 2; step < leased; ++step) Progress(step, 0.5);
  EXPECT_FALSE(core_.handed_over());
  EXPECT_EQ(Leased(), leased);
  Progress(leased, 0.5);
  EXPECT_TRUE(core_.handed_over());
  ASSERT_TRUE(sent_["job-0-a-0"].back().has_redirect());
  EXPECT_EQ(sent_["job-0-a-0"].back().redirect().address(), "10.0.0.2:7070");
  EXPECT_THAT(core_.ApplyPlan(plan_, Now()), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(HandOverTest, TrainingGoesOnWhenTheOtherOneGivesUp) {
  TrainTo(1);
  const int64_t leased = Leased();
  ASSERT_THAT(core_.HandOver(Successor(), Now()), base::IsOk());
  core_.CancelHandOver(Now());
  for (int64_t step = 2; step <= leased; ++step) Progress(step, 0.5);
  EXPECT_FALSE(core_.handed_over());
  EXPECT_GT(Leased(), leased);
}

TEST_F(HandOverTest, AJobThatIsBeingSuspendedStays) {
  TrainTo(1);
  ASSERT_THAT(core_.Suspend("user", 0, Now()), base::IsOk());
  EXPECT_THAT(core_.HandOver(Successor(), Now()), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(HandOverTest, TheLargestTermTakesOver) {
  TrainTo(1);
  const int64_t leased = Leased();
  ASSERT_THAT(core_.HandOver(Successor(2), Now()), base::IsOk());
  ASSERT_THAT(core_.HandOver(Successor(3), Now()), base::IsOk());  // the second one was lost meanwhile
  EXPECT_THAT(core_.HandOver(Successor(2), Now()), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(core_.successor_term(), 3);
  for (int64_t step = 2; step <= leased; ++step) Progress(step, 0.5);
  ASSERT_TRUE(core_.handed_over());
  EXPECT_EQ(sent_["job-0-a-0"].back().redirect().term(), 3);
  EXPECT_THAT(core_.HandOver(Successor(3), Now()), base::IsOk()) << "it may ask again";
  // Term 4 cannot know what term 3 has done since.
  EXPECT_THAT(core_.HandOver(Successor(4), Now()), StatusIs(absl::StatusCode::kUnavailable));
}

// A third coordinator asks before all members have come to the second one, which has done nothing yet.
TEST_F(HandOverTest, TheOtherOneHandsOverWhatItHasNotBegun) {
  job::v1::CoordinatorState state = HandedOver(7);
  state.mutable_handed_over()->set_checkpoint_attempts(2);
  CoordinatorCore core(Options(), Now(), state);
  Return(core, plan_.slots(0), 7);
  ASSERT_THAT(core.HandOver(Successor(3), Now()), base::IsOk());
  ASSERT_TRUE(core.handed_over());
  const std::optional<job::v1::CoordinatorState> last = LastRecord(core);
  ASSERT_TRUE(last);
  EXPECT_TRUE(last->handed_over().at_boundary());
  EXPECT_EQ(last->handed_over().term(), 3);
  EXPECT_EQ(last->handed_over().checkpoint_attempts(), 2);
  CoordinatorCore third(Options(), Now(), *last);
  for (const job::v1::MemberSlot& slot : plan_.slots()) Return(third, slot, 7);
  EXPECT_EQ(third.Observe(Now()).phase(), job::v1::JOB_PHASE_TRAINING);
  EXPECT_EQ(third.Observe(Now()).restarts(), 0);
}

// The generation that is being switched to may not be in force on every member yet.
TEST_F(HandOverTest, WaitsForTheEndOfASwitch) {
  PrepareSecondPlan();
  const int64_t leased = Leased();
  const std::vector<std::string> all = {"job-0-a-0", "job-1-a-0", "job-server-0", "job-0-b-0", "job-1-b-0"};
  for (const std::string& member : all) {
    job::v1::SessionRequest message;
    message.mutable_warmed()->set_generation(2);
    message.mutable_warmed()->set_rows(100);
    Say(member, message);
  }
  for (int64_t step = 2; step <= leased; ++step) Progress(step, 0.5);
  ASSERT_EQ(Seen().phase(), job::v1::JOB_PHASE_SWITCHING);
  ASSERT_THAT(core_.HandOver(Successor(), Now()), base::IsOk());
  EXPECT_FALSE(core_.handed_over());
  for (const std::string& member : all) {
    job::v1::SessionRequest message;
    message.mutable_ready()->set_generation(2);
    message.mutable_ready()->set_step(leased);
    message.mutable_ready()->set_state_samples(10 * leased);
    Say(member, message);
  }
  ASSERT_TRUE(core_.handed_over());
  EXPECT_EQ(core_.active_generation(), 2);
  EXPECT_EQ(Leased(), leased) << "nothing is leased in the new generation";
}

TEST_F(HandOverTest, AGenerationThatIsBeingPreparedIsGivenUp) {
  PrepareSecondPlan();
  const int64_t leased = Leased();
  ASSERT_THAT(core_.HandOver(Successor(), Now()), base::IsOk());
  for (int64_t step = 2; step < leased; ++step) Progress(step, 0.5);
  ApplyLast(leased);
  const std::optional<job::v1::CoordinatorState> last = LastRecord(core_);
  ASSERT_TRUE(last);
  EXPECT_TRUE(last->handed_over().at_boundary());
  EXPECT_EQ(last->active().generation(), 1);
  EXPECT_EQ(last->desired().plan().generation(), 2) << "the other one prepares it again";
  EXPECT_GE(last->last_generation(), 2) << "under another number";
}

// The other coordinator: the generation trains on as soon as all members have come with the state of the last step.
TEST_F(HandOverTest, TheOtherOneAdoptsTheGeneration) {
  for (const bool one_differs : {false, true}) {
    SCOPED_TRACE(one_differs);
    CoordinatorCore core(Options(), Now(), HandedOver(7));
    std::map<std::string, std::vector<job::v1::SessionResponse>> sent;
    int left = plan_.slots_size();
    for (const job::v1::MemberSlot& slot : plan_.slots()) {
      EXPECT_EQ(core.Observe(Now()).phase(), job::v1::JOB_PHASE_RECOVERING);
      Return(core, slot, one_differs && left == 1 ? 6 : 7);
      for (Command& command : core.TakeCommands()) {
        if (auto* send = std::get_if<SendCommand>(&command)) sent[send->member].push_back(send->message);
      }
      --left;
    }
    const job::v1::SessionResponse& order = sent["job-0-a-0"].back();
    if (one_differs) {
      EXPECT_TRUE(order.has_halt());
      EXPECT_EQ(core.Observe(Now()).restarts(), 1);
      continue;
    }
    EXPECT_EQ(core.Observe(Now()).phase(), job::v1::JOB_PHASE_TRAINING);
    EXPECT_EQ(core.Observe(Now()).restarts(), 0);
    ASSERT_TRUE(order.has_lease());
    EXPECT_EQ(order.lease().steps(0).step(), 8);
  }
}

// Members may still write the checkpoint that the one before has started.
TEST_F(HandOverTest, TheOtherOneSavesTheSameStepIntoAnotherFolder) {
  for (const auto& [attempts, folder] :
       std::map<int, std::string>{{0, "step-00000020-e1"}, {2, "step-00000020-e1-2"}}) {
    SCOPED_TRACE(attempts);
    CoreOptions options = Options();
    options.checkpoints = true;
    job::v1::CoordinatorState state = HandedOver(20);
    state.mutable_handed_over()->set_checkpoint_attempts(attempts);
    CoordinatorCore core(options, Now(), state);
    for (const job::v1::MemberSlot& slot : plan_.slots()) Return(core, slot, 20);
    std::set<std::string> folders;
    for (const Command& command : core.TakeCommands()) {
      const auto* send = std::get_if<SendCommand>(&command);
      if (send != nullptr && send->message.has_checkpoint()) folders.insert(send->message.checkpoint().folder());
    }
    EXPECT_THAT(folders, testing::ElementsAre(folder));
  }
}

// The one before may have given a checkpoint up, and moves may be more frequent than checkpoints.
TEST_F(HandOverTest, TheOtherOneStartsACheckpointAtOnce) {
  CoreOptions options = Options();
  options.checkpoints = true;
  CoordinatorCore core(options, Now(), HandedOver(7));
  for (const job::v1::MemberSlot& slot : plan_.slots()) Return(core, slot, 7);
  core.Tick(Now());
  bool started = false;
  for (const Command& command : core.TakeCommands()) {
    const auto* send = std::get_if<SendCommand>(&command);
    started = started || (send != nullptr && send->message.has_checkpoint());
  }
  EXPECT_TRUE(started);
}

// It handed the job over, ended, and was started again before the other one claimed the job. Members may be there.
TEST_F(HandOverTest, TheFormerOneDoesNotTakeTheStateForLost) {
  for (const int64_t own_term : {1, 2}) {
    SCOPED_TRACE(own_term);
    job::v1::CoordinatorState state = HandedOver(7);
    state.mutable_handed_over()->set_term(2);
    CoreOptions options = Options();
    options.term = own_term;
    CoordinatorCore core(options, Now(), state);
    time_ += options.adopt_wait + options.reconnect_wait + base::seconds(1);
    core.Tick(Now());
    const std::optional<job::v1::CoordinatorState> last = LastRecord(core);
    const bool lost = last && last->active().generation() == 0;
    EXPECT_EQ(lost, own_term == 2) << "the one that took over waits for its members only";
    if (own_term == 2) continue;
    for (const job::v1::MemberSlot& slot : plan_.slots()) Return(core, slot, 7);
    EXPECT_EQ(core.Observe(Now()).phase(), job::v1::JOB_PHASE_TRAINING) << "the other one never came";
  }
}

TEST_F(HandOverTest, TheLastRecordCountsTheCheckpointsOfItsStep) {
  TrainTo(1);
  const int64_t leased = Leased();
  ASSERT_THAT(core_.Drain({"job-0-a-0"}, 0, Now()), base::IsOk());  // it alone holds its stage: a checkpoint is due
  Take();
  ASSERT_EQ(Leased(), leased);
  ASSERT_TRUE(sent_["job-0-a-0"].back().has_checkpoint());
  ASSERT_EQ(sent_["job-0-a-0"].back().checkpoint().step(), leased);
  ASSERT_THAT(core_.HandOver(Successor(), Now()), base::IsOk());
  for (int64_t step = 2; step < leased; ++step) Progress(step, 0.5);
  ApplyLast(leased);
  const std::optional<job::v1::CoordinatorState> last = LastRecord(core_);
  ASSERT_TRUE(last && last->has_handed_over());
  EXPECT_TRUE(last->handed_over().at_boundary());
  EXPECT_EQ(last->handed_over().checkpoint_attempts(), 1);
}

// A journal of another release, or one that was edited: the operator's next plan is carried out.
TEST_F(HandOverTest, APlanInTheJournalThatCannotBeCarriedOutIsForgotten) {
  job::v1::CoordinatorState state = HandedOver(4);
  const job::v1::ApplyPlanRequest good = plan_;
  state.clear_handed_over();
  state.mutable_desired()->mutable_slots()->Clear();
  state.mutable_active_plan()->mutable_slots()->Clear();
  CoordinatorCore restored(CoreOptions{.epochs = 2, .batch_size = 10}, Now(), state);
  restored.OnCheckpointFound(CheckpointSearch(), Now());
  EXPECT_EQ(restored.ledger()->committed(), 4);
  EXPECT_FALSE(restored.over());
  EXPECT_TRUE(restored.ApplyPlan(good, Now()).ok());
}

}  // namespace
}  // namespace medley::worker
