// What the coordinator does when a parameter server is lost: the rows are rebuilt where the survivors keep every push.
#include "tests/unit/worker/coordinator/core/checkpoint_fixture.h"

namespace medley::worker {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

struct Pushes {
  int64_t first = 0;
  int64_t last = 0;
  int trainer = 0;
  int trainers = 1;
  int shards = 1;
};

// One trainer ("job-0-a-0") pushes to one server; another one trains the dense stage. The checkpoint of step 10 was
// restored.
class RebuildCoreTest : public CheckpointCoreTest {
 protected:
  static constexpr char kServer[] = "job-server-0", kPusher[] = "job-0-a-0", kOther[] = "job-1-a-0";

  void Lose(const std::string& member) {
    core_->OnLost(member, "i-" + member, Now());
    Take();
  }
  void Halted(const std::string& member, int64_t step, const std::vector<Pushes>& kept = {}) {
    job::v1::SessionRequest message;
    message.mutable_halted()->set_generation(core_->active_generation());
    message.mutable_halted()->set_applied_step(step);
    message.mutable_halted()->set_undo_to_step(step - 1);
    for (const Pushes& pushes : kept) {
      job::v1::KeptPushes& to = *message.mutable_halted()->add_pushes();
      to.set_first_step(pushes.first);
      to.set_last_step(pushes.last);
      to.set_trainer(pushes.trainer);
      to.set_trainers(pushes.trainers);
      to.set_shards(pushes.shards);
    }
    Say(member, message);
  }
  void Replace(const std::string& member, job::v1::MemberRole role, const std::string& pool) {
    job::v1::SessionRequest message;
    message.mutable_hello()->set_member(member);
    message.mutable_hello()->set_role(role);
    message.mutable_hello()->set_pool(pool);
    message.mutable_hello()->set_instance("new-" + member);
    core_->OnMessage(member, "new-" + member, message, Now());
    Take();
  }
  void ReplaceServer() { Replace(kServer, job::v1::MEMBER_ROLE_SERVER, "servers"); }
  void SayAsNew(const job::v1::SessionRequest& message) {
    core_->OnMessage(kServer, std::string("new-") + kServer, message, Now());
    Take();
  }
  // Trains the steps 11 to 15; the pusher has applied one more than the other one when the server is lost.
  void TrainAndLoseTheServer() {
    Train();
    for (int64_t step = 11; step <= 15; ++step) Progress(step);
    prepare_.reset();
    Lose(kServer);
  }
  bool FallsBack() const {
    return std::ranges::any_of(logs_,
                               [](const std::string& line) { return line.find("rolling back") != std::string::npos; });
  }
};

TEST_F(RebuildCoreTest, TheNewServerGetsTheCheckpointAndThePushesSince) {
  TrainAndLoseTheServer();
  Halted(kPusher, 16, {{11, 16}});
  Halted(kOther, 15);
  EXPECT_EQ(prepare_, std::nullopt) << "nobody serves the shard";
  EXPECT_EQ(Seen().phase(), job::v1::JOB_PHASE_RECOVERING);
  EXPECT_THAT(Seen().missing_members(), ElementsAre(kServer));
  ReplaceServer();
  ASSERT_TRUE(prepare_.has_value());
  EXPECT_EQ(prepare_->origin(), job::v1::STATE_ORIGIN_PEERS);
  EXPECT_EQ(prepare_->checkpoint(), "step-00000010-e3");
  EXPECT_THAT(prepare_->rebuild().shards(), ElementsAre(0));
  EXPECT_EQ(prepare_->rebuild().after_step(), 10);
  EXPECT_EQ(prepare_->rebuild().to_step(), 15);
  EXPECT_EQ(prepare_->sources_size(), 2) << "the trainers";
  const int64_t generation = prepare_->generation();
  job::v1::SessionRequest warmed, ready;
  warmed.mutable_warmed()->set_generation(generation);
  warmed.mutable_warmed()->set_rows(kRows);
  ready.mutable_ready()->set_generation(generation);
  ready.mutable_ready()->set_step(15);
  ready.mutable_ready()->set_state_samples(150);
  for (const char* member : {kPusher, kOther}) Say(member, warmed);
  SayAsNew(warmed);
  for (const char* member : {kPusher, kOther}) Say(member, ready);
  SayAsNew(ready);
  ASSERT_EQ(core_->active_generation(), generation);
  const job::v1::Observation seen = Seen();
  ASSERT_GT(seen.switches_size(), 0);
  const job::v1::SwitchRecord& record = *seen.switches().rbegin();
  EXPECT_EQ(record.at_step(), 15);
  EXPECT_LE(record.lost_steps(), 1);
  EXPECT_EQ(record.cause(), job::v1::SWITCH_CAUSE_MEMBER_LOST);
  EXPECT_EQ(
      record.reason(),
      "job-server-0 was lost; the rows of 1 of 1 servers are rebuilt from the checkpoint of step 10 and the pushes "
      "of 5 steps");
}

// Whatever the members say, rows are rebuilt only where every push of every step is kept.
TEST_F(RebuildCoreTest, APushThatNobodyKeepsSendsAllToTheCheckpoint) {
  constexpr int kMany = std::numeric_limits<int>::max();
  constexpr int64_t kFar = std::numeric_limits<int64_t>::max();
  const struct {
    std::vector<Pushes> kept;
    int64_t missing = 0;  // the step that the reason names; 0: the rows are rebuilt
  } cases[] = {
      {{}, 11},
      {{{11, 14}}, 15},
      {{{12, 15}}, 11},
      {{{11, 12}, {14, 15}}, 13},
      {{{11, 15, 0, 2}}, 11},                  // of two trainers one keeps them
      {{{11, 15, 0, 2}, {11, 13, 1, 2}}, 14},  // the other one only some
      {{{11, 15, 0, 2}, {11, 15, 1, 3}}, 11},  // they do not agree how many they were
      {{{11, 15, 0, 1, 2}}, 11},               // to two shards, not to this one
      {{{11, 15, -1, 1}}, 11},
      {{{11, 15, 1, 1}}, 11},
      {{{11, 15, 0, 0}}, 11},
      {{{11, 15, 0, -1}}, 11},
      {{{11, 15, 0, kMany}}, 11},
      {{{15, 11}}, 11},
      {{{-kFar, kFar, 0, kMany}}, 11},
      {{{11, 15}}, 0},
      {{{1, 30}}, 0},
      {{{-kFar, kFar}}, 0},
      {{{11, 12}, {13, 15}}, 0},
      {{{11, 15}, {11, 15}}, 0},                        // twice
      {{{11, 13, 0, 2}, {11, 13, 1, 2}, {14, 15}}, 0},  // a trainer left after step 13
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(testing::PrintToString(&one - cases));
    logs_.clear();
    TrainAndLoseTheServer();
    Halted(kOther, 15);
    Halted(kPusher, 15, one.kept);
    EXPECT_EQ(FallsBack(), one.missing > 0);
    if (one.missing == 0) continue;
    EXPECT_THAT(logs_, Contains(HasSubstr(fmt::format("lost rows cannot be rebuilt: the pushes of step {} are no "
                                                      "longer kept by all who sent them",
                                                      one.missing))));
    ReplaceServer();
    Answer(Found(10));
    ASSERT_TRUE(prepare_.has_value());
    EXPECT_EQ(prepare_->origin(), job::v1::STATE_ORIGIN_CHECKPOINT);
    EXPECT_FALSE(prepare_->has_rebuild());
  }
}

TEST_F(RebuildCoreTest, ATrainerThatIsLostBeforeTheRowsAreRebuiltTakesItsPushesWithIt) {
  TrainAndLoseTheServer();
  Halted(kPusher, 15, {{11, 15}});
  Halted(kOther, 15);
  EXPECT_FALSE(FallsBack());
  Lose(kPusher);
  EXPECT_TRUE(FallsBack());
}

// The dense part is lost, too. The reason does not speak of pushes.
TEST_F(RebuildCoreTest, WithoutADenseStageAllReturnToTheCheckpoint) {
  TrainAndLoseTheServer();
  Lose(kOther);
  Halted(kPusher, 15, {{11, 15}});
  EXPECT_TRUE(FallsBack());
  EXPECT_THAT(logs_, Not(Contains(HasSubstr("cannot be rebuilt"))));
}

TEST_F(RebuildCoreTest, AServerThatCannotRebuildSendsAllToTheCheckpointOnce) {
  TrainAndLoseTheServer();
  Halted(kPusher, 15, {{11, 15}});
  Halted(kOther, 15);
  ReplaceServer();
  job::v1::SessionRequest message;
  message.mutable_fault()->set_generation(prepare_->generation());
  message.mutable_fault()->set_kind(job::v1::FAULT_KIND_RESTORE);
  message.mutable_fault()->set_message("rows-e3-0.mck: wrong checksum");
  SayAsNew(message);
  EXPECT_TRUE(FallsBack());
  Answer(Found(10));
  ASSERT_EQ(prepare_->origin(), job::v1::STATE_ORIGIN_CHECKPOINT);
  EXPECT_THAT(Seen().message(), HasSubstr("lost rows cannot be rebuilt: job-server-0: rows-e3-0.mck: wrong checksum"));
}

// An exchange that breaks is tried again: the new server may have been lost, too.
TEST_F(RebuildCoreTest, TheNewServerMayBeLostAgain) {
  TrainAndLoseTheServer();
  Halted(kPusher, 15, {{11, 15}});
  Halted(kOther, 15);
  ReplaceServer();
  const int64_t first = prepare_->generation();
  core_->OnLost(kServer, std::string("new-") + kServer, Now());
  Take();
  EXPECT_FALSE(FallsBack());
  ReplaceServer();
  Advance(base::seconds(2));
  EXPECT_GT(prepare_->generation(), first);
  EXPECT_TRUE(prepare_->has_rebuild());
}

// A checkpoint that became complete while the members halted saves work, and the one before may be removed.
TEST_F(RebuildCoreTest, TheNewestCheckpointIsUsed) {
  Train();
  Progress(11);
  Advance(base::seconds(11));
  ASSERT_TRUE(order_.has_value());
  for (int64_t step = 12; step <= 20; ++step) Progress(step);
  ASSERT_LE(order_->step(), 20);
  Checkpointed();
  ASSERT_EQ(manifests_.size(), 1u);
  prepare_.reset();
  Lose(kServer);
  Halted(kPusher, 20, {{11, 20}});
  Halted(kOther, 20);
  core_->OnManifestWritten(order_->folder(), absl::OkStatus(), Now());
  Take();
  ReplaceServer();
  ASSERT_TRUE(prepare_.has_value());
  EXPECT_EQ(prepare_->rebuild().after_step(), order_->step());
  EXPECT_EQ(prepare_->checkpoint(), order_->folder());
}

TEST_F(RebuildCoreTest, AFullLogGetsACheckpointButNotAlways) {
  Train();
  const auto progress = [&](int64_t step) {
    for (const job::v1::MemberSlot& slot : plan_.slots()) {
      job::v1::SessionRequest message;
      message.mutable_progress()->set_generation(core_->active_generation());
      message.mutable_progress()->set_step(step);
      message.mutable_progress()->set_wants_checkpoint(slot.member() == kPusher);
      Say(slot.member(), message);
    }
  };
  Advance(base::seconds(2));
  progress(11);
  progress(12);
  ASSERT_TRUE(order_.has_value()) << "the interval is 10 s";
  const int64_t saved = order_->step();
  for (int64_t step = 13; step <= saved; ++step) progress(step);
  Checkpointed();
  Advance(base::milliseconds(200));  // it took so long
  core_->OnManifestWritten(order_->folder(), absl::OkStatus(), Now());
  Take();
  order_.reset();
  Advance(base::seconds(2));
  progress(saved + 1);
  EXPECT_EQ(order_, std::nullopt) << "such checkpoints are written in 4 % of the time at most";
  Advance(base::seconds(4));
  progress(saved + 2);
  EXPECT_TRUE(order_.has_value());
}

TEST_F(RebuildCoreTest, LeasesSayWhatIsSaved) {
  Train();
  for (int64_t step = 11; step <= 16; ++step) Progress(step);
  EXPECT_THAT(saved_steps_, Not(IsEmpty()));
  EXPECT_THAT(saved_steps_, testing::Each(10));
}

}  // namespace
}  // namespace medley::worker
