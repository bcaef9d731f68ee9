// Tests how one state machine hands the job over and another takes it over.
#include <gmock/gmock.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>

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
  job::v1::HandOverRequest Successor() const {
    job::v1::HandOverRequest to;
    to.set_term(2);
    to.set_address("10.0.0.2:7070");
    return to;
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
  for (const job::v1::MemberSlot& slot : plan_.slots()) {
    job::v1::SessionRequest message;
    message.mutable_progress()->set_generation(1);
    message.mutable_progress()->set_step(leased);
    core_.OnMessage(slot.member(), "i-" + slot.member(), message, Now());
  }
  std::optional<job::v1::CoordinatorState> last;
  for (const Command& command : core_.TakeCommands()) {
    if (const auto* record = std::get_if<JournalCommand>(&command)) last = record->state;
  }
  ASSERT_TRUE(last && last->has_handed_over());
  EXPECT_TRUE(last->handed_over().at_boundary());
  EXPECT_EQ(last->handed_over().checkpoint_attempts(), 1);
}

}  // namespace
}  // namespace medley::worker
