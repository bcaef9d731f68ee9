// Tests what the state machine does when checkpoints cannot be found, written or completed.
#include <gmock/gmock.h>

#include <optional>
#include <string>
#include <vector>

#include "common/base/testing/status_matchers.h"
#include "tests/unit/worker/coordinator/core/sim_world.h"
#include "worker/coordinator/core/core.h"

namespace medley::worker {
namespace {

using base::IsOk;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

constexpr int64_t kRows = 100;

// A job with one stage of each kind whose journal says that steps were trained and, if `saved` > 0, saved.
class CheckpointCoreTest : public testing::Test {
 protected:
  static CoreOptions Options() {
    CoreOptions options;
    options.epochs = 10;
    options.batch_size = 10;
    options.checkpoints = true;
    options.checkpoint_timeout = base::seconds(60);
    options.checkpoint_interval = base::seconds(10);
    options.max_searches = 3;
    return options;
  }
  void Start(int64_t saved, int64_t committed = 15) {
    job::v1::CoordinatorState journal;
    journal.set_last_generation(3);
    journal.set_from_generation(3);
    journal.set_last_checkpoint_step(saved);
    *journal.mutable_ledger() = At(committed);
    CoreOptions options = Options();
    options.exports = exports_;
    core_ = std::make_unique<CoordinatorCore>(options, Now(), journal);
    plan_ = sim::MakePlan(1, 1, 1, 1, "a");
    ASSERT_THAT(core_->ApplyPlan(plan_, Now()), IsOk());
    Take();
    for (const job::v1::MemberSlot& slot : plan_.slots()) {
      job::v1::SessionRequest message;
      message.mutable_hello()->set_member(slot.member());
      message.mutable_hello()->set_role(slot.role());
      message.mutable_hello()->set_pool(slot.pool());
      message.mutable_hello()->set_instance("i-" + slot.member());
      Say(slot.member(), message);
    }
  }
  static job::v1::LedgerRecord At(int64_t step) {
    Ledger ledger = *Ledger::Create(kRows, Options().epochs, 10);
    EXPECT_THAT(ledger.ResetTo(step), IsOk());
    return ledger.ToRecord();
  }
  static CheckpointSearch Found(int64_t step, int64_t generation = 3) {
    CheckpointSearch search;
    search.newest = CheckpointPosition{fmt::format("step-{:08}-e{}", step, generation), generation, step, At(step)};
    return search;
  }
  Instant Now() const { return {base::SteadyTime(time_), base::WallTime(base::seconds(1'700'000'000))}; }
  void Say(const std::string& member, const job::v1::SessionRequest& message) {
    core_->OnMessage(member, "i-" + member, message, Now());
    Take();
  }
  template <typename Fill>
  void All(Fill fill) {
    for (const job::v1::MemberSlot& slot : plan_.slots()) {
      job::v1::SessionRequest message;
      fill(message);
      Say(slot.member(), message);
    }
  }
  void Take() {
    for (Command& command : core_->TakeCommands()) {
      if (auto* find = std::get_if<FindCheckpointCommand>(&command)) searches_.push_back(*find);
      if (auto* manifest = std::get_if<WriteManifestCommand>(&command)) manifests_.push_back(*manifest);
      if (auto* discard = std::get_if<DiscardCheckpointCommand>(&command)) discarded_.push_back(*discard);
      if (auto* order = std::get_if<ExportCommand>(&command)) written_.push_back(*order);
      if (auto* finish = std::get_if<FinishCommand>(&command)) exit_code_ = finish->exit_code;
      if (auto* line = std::get_if<LogCommand>(&command)) logs_.push_back(line->message);
      if (auto* send = std::get_if<SendCommand>(&command)) {
        if (send->message.has_prepare()) prepare_ = send->message.prepare();
        if (send->message.has_checkpoint()) order_ = send->message.checkpoint();
        if (send->message.has_halt()) ++halts_;
      }
    }
  }
  void Advance(base::nanoseconds by) {
    time_ += by;
    core_->Tick(Now());
    Take();
  }
  void Answer(const absl::StatusOr<CheckpointSearch>& found) {
    core_->OnCheckpointFound(found, Now());
    Take();
  }
  // Restores the checkpoint of step 10 and trains.
  void Train() {
    Start(10);
    Answer(Found(10));
    const int64_t generation = prepare_->generation();
    All([&](auto& message) {
      message.mutable_warmed()->set_generation(generation);
      message.mutable_warmed()->set_rows(kRows);
    });
    All([&](auto& message) {
      message.mutable_ready()->set_generation(generation);
      message.mutable_ready()->set_step(10);
      message.mutable_ready()->set_state_samples(100);
    });
    ASSERT_EQ(core_->active_generation(), generation);
  }
  void Progress(int64_t step) {
    All([&](auto& message) {
      message.mutable_progress()->set_generation(core_->active_generation());
      message.mutable_progress()->set_step(step);
    });
  }
  void Checkpointed() {
    All([&](auto& message) { message.mutable_checkpointed()->set_step(order_->step()); });
  }
  void CheckpointFault(const std::string& text) {
    job::v1::SessionRequest message;
    message.mutable_fault()->set_generation(order_->generation());
    message.mutable_fault()->set_step(order_->step());
    message.mutable_fault()->set_kind(job::v1::FAULT_KIND_CHECKPOINT);
    message.mutable_fault()->set_message(text);
    Say("job-server-0", message);
  }
  // Commits every step, so that only the last checkpoint is missing.
  void TrainToTheEnd() {
    Train();
    for (int64_t step = 11; step <= 100; ++step) Progress(step);
  }
  // All samples are trained and saved, and every member has evaluated.
  void EvaluateAtTheEnd(bool with_transform = true) {
    exports_ = true;
    TrainToTheEnd();
    Checkpointed();
    core_->OnManifestWritten(order_->folder(), absl::OkStatus(), Now());
    Take();
    All([&](auto& message) {
      message.mutable_evaluated()->set_samples(2);
      (*message.mutable_evaluated()->mutable_sums())["log_loss"] = 1;
      if (with_transform) message.mutable_evaluated()->mutable_transform()->add_columns()->set_mean(3);
    });
  }
  void Exported(const absl::Status& status) {
    core_->OnExported(100, status, Now());
    Take();
  }
  job::v1::Observation Seen() { return core_->Observe(Now()); }

  base::nanoseconds time_{base::seconds(100)};
  std::unique_ptr<CoordinatorCore> core_;
  job::v1::ApplyPlanRequest plan_;
  std::vector<FindCheckpointCommand> searches_;
  std::vector<WriteManifestCommand> manifests_;
  std::vector<DiscardCheckpointCommand> discarded_;
  bool exports_ = false;
  std::vector<ExportCommand> written_;
  std::optional<job::v1::Prepare> prepare_;
  std::optional<job::v1::Checkpoint> order_;
  std::optional<int> exit_code_;
  std::vector<std::string> logs_;
  int halts_ = 0;
};

TEST_F(CheckpointCoreTest, AFailedSearchIsRepeatedAndNeverMeansThatThereIsNoCheckpoint) {
  Start(10);
  for (int attempt = 1; attempt <= 4; ++attempt) {
    ASSERT_EQ(searches_.size(), static_cast<size_t>(attempt));
    EXPECT_EQ(searches_.back().reject_unreadable, attempt == 4);
    EXPECT_FALSE(prepare_.has_value());
    EXPECT_FALSE(exit_code_.has_value());
    Answer(base::Internal("listing /ck: i/o error"));
    Advance(base::seconds(30));
  }
  EXPECT_EQ(exit_code_, 1);
  EXPECT_TRUE(Seen().retryable());
  EXPECT_THAT(Seen().message(), AllOf(HasSubstr("4 attempts"), HasSubstr("listing /ck: i/o error")));
}

TEST_F(CheckpointCoreTest, ASearchThatSucceedsAfterAFaultRestores) {
  Start(10);
  Answer(base::Internal("listing /ck: i/o error"));
  Advance(base::seconds(30));
  Answer(Found(10));
  ASSERT_TRUE(prepare_.has_value());
  EXPECT_EQ(prepare_->origin(), job::v1::STATE_ORIGIN_CHECKPOINT);
  EXPECT_EQ(prepare_->checkpoint(), "step-00000010-e3");
}

TEST_F(CheckpointCoreTest, AJobWithASavedCheckpointDoesNotStartFromTheSeed) {
  Start(10);
  Answer(CheckpointSearch());
  EXPECT_FALSE(prepare_.has_value());
  EXPECT_EQ(exit_code_, 1);
  EXPECT_TRUE(Seen().retryable());
  EXPECT_THAT(Seen().message(), AllOf(HasSubstr("step 10 was saved"), HasSubstr("is emptied")));
}

// The coordinator may have been killed between the manifest and the journal.
TEST_F(CheckpointCoreTest, ADamagedOnlyCheckpointDoesNotMeanTheSeedEither) {
  Start(0);
  CheckpointSearch search;
  search.rejected = {"step-00000010-e3: rows-e3-0.mck: crc32 is 1, the manifest says 2"};
  Answer(search);
  EXPECT_FALSE(prepare_.has_value());
  EXPECT_EQ(exit_code_, 1);
  EXPECT_THAT(Seen().message(), HasSubstr("rows-e3-0.mck: crc32"));
}

TEST_F(CheckpointCoreTest, WithoutAnyCheckpointTheJobStartsFromTheSeedAndSaysSo) {
  Start(0);
  Answer(CheckpointSearch());
  ASSERT_TRUE(prepare_.has_value());
  EXPECT_EQ(prepare_->origin(), job::v1::STATE_ORIGIN_INITIAL);
  EXPECT_THAT(logs_, Contains(HasSubstr("starts from the seed again")));
}

TEST_F(CheckpointCoreTest, AnOlderCheckpointIsUsedWithTheReason) {
  Start(10);
  CheckpointSearch search = Found(5);
  search.rejected = {"step-00000010-e3: dense-e3-t1-0.mck: the file does not exist"};
  Answer(search);
  ASSERT_TRUE(prepare_.has_value());
  EXPECT_EQ(prepare_->checkpoint(), "step-00000005-e3");
  EXPECT_EQ(Seen().last_checkpoint_step(), 5);  // also what a suspension at step 10 has to save again
  EXPECT_THAT(logs_, Contains(HasSubstr("dense-e3-t1-0.mck: the file does not exist")));
  EXPECT_THAT(logs_, Contains(HasSubstr("step 10 cannot be restored: the job continues from step 5")));
}

TEST_F(CheckpointCoreTest, AGenerationIsNewerThanThatOfTheCheckpoint) {
  Start(10);
  Answer(Found(10, 9));  // the journal lost its last records
  ASSERT_TRUE(prepare_.has_value());
  EXPECT_EQ(prepare_->generation(), 10);
}

TEST_F(CheckpointCoreTest, AVolumeThatNeverAnswersASearchFailsTheJob) {
  Start(10);
  ASSERT_EQ(searches_.size(), 1u);
  Advance(Options().volume_timeout - base::seconds(1));
  EXPECT_FALSE(exit_code_.has_value());
  Advance(base::seconds(1));
  EXPECT_EQ(exit_code_, 1);
  EXPECT_TRUE(Seen().retryable());
  EXPECT_THAT(Seen().message(), HasSubstr("did not answer"));
}

TEST_F(CheckpointCoreTest, EveryAttemptWritesIntoAFolderOfItsOwn) {
  TrainToTheEnd();
  ASSERT_TRUE(order_.has_value());
  EXPECT_EQ(order_->folder(), "step-00000100-e4");
  CheckpointFault("no space left on device");
  Advance(base::seconds(2));
  EXPECT_EQ(order_->folder(), "step-00000100-e4-1");
  Checkpointed();
  ASSERT_EQ(manifests_.size(), 1u);
  EXPECT_EQ(manifests_[0].folder, "step-00000100-e4-1");
}

TEST_F(CheckpointCoreTest, TrainingGoesOnWhenAMemberCannotWriteItsPart) {
  Train();
  Progress(11);
  Advance(base::seconds(10));
  ASSERT_TRUE(order_.has_value());
  const int64_t step = order_->step();
  CheckpointFault("no space left on device");
  EXPECT_THAT(logs_, Contains(AllOf(HasSubstr("job-server-0"), HasSubstr("no space left on device"))));
  EXPECT_EQ(halts_, 0);
  for (int64_t s = 12; s <= step; ++s) Progress(s);
  EXPECT_TRUE(manifests_.empty());
  EXPECT_EQ(Seen().phase(), job::v1::JOB_PHASE_TRAINING);
  EXPECT_THAT(Seen().checkpoint_failure().message(), HasSubstr("no space left on device"));
  EXPECT_EQ(Seen().checkpoint_failures(), 1);
  ASSERT_EQ(discarded_.size(), 1u);  // the parts of the other members take no room
  EXPECT_THAT(discarded_[0].folder, HasSubstr(fmt::format("{:08}", step)));
  Advance(base::seconds(10));
  EXPECT_GT(order_->step(), step);  // the next checkpoint is tried at its time
}

// Failures that never end must not use up the bounded number of attempts of anything else.
TEST_F(CheckpointCoreTest, AFullVolumeNeverEndsATrainingJob) {
  Train();
  int64_t step = 11;
  for (int round = 0; round < 20; ++round) {
    Advance(base::seconds(10));
    ASSERT_TRUE(order_.has_value());
    CheckpointFault("no space left on device");
    for (const int64_t leased = core_->ledger()->leased(); step <= std::min<int64_t>(leased, 90); ++step)
      Progress(step);
  }
  EXPECT_FALSE(exit_code_.has_value());
  EXPECT_EQ(halts_, 0);
  const int64_t since = Seen().checkpoint_failure().since().seconds();
  EXPECT_GT(since, 0);
  Advance(base::seconds(10));
  Checkpointed();
  for (const int64_t leased = core_->ledger()->leased(); step <= leased; ++step) Progress(step);
  ASSERT_FALSE(manifests_.empty());
  core_->OnManifestWritten(manifests_.back().folder, absl::OkStatus(), Now());
  EXPECT_FALSE(Seen().has_checkpoint_failure());
  EXPECT_GE(Seen().checkpoint_failures(), 20);
}

TEST_F(CheckpointCoreTest, TheLastCheckpointIsTriedAgainBoundedly) {
  TrainToTheEnd();
  int attempts = 0;
  for (; attempts < 60 && !exit_code_; ++attempts) {
    CheckpointFault("no space left on device");
    if (exit_code_) break;
    EXPECT_TRUE(Seen().has_checkpoint_failure());
    EXPECT_EQ(Seen().phase(), job::v1::JOB_PHASE_TRAINING);  // and not complete
    Advance(base::seconds(30));
  }
  EXPECT_EQ(attempts, 20);  // of 30 s each: final_save_wait
  EXPECT_EQ(exit_code_, 1);
  EXPECT_TRUE(Seen().retryable());
  EXPECT_THAT(Seen().message(), HasSubstr("no space left on device"));
}

TEST_F(CheckpointCoreTest, AManifestThatIsNeverWrittenHoldsUpNothing) {
  Train();
  Progress(11);
  Advance(base::seconds(10));
  const int64_t step = order_->step();
  Checkpointed();
  for (int64_t s = 12; s <= step; ++s) Progress(s);
  ASSERT_EQ(manifests_.size(), 1u);
  Advance(base::seconds(10));
  EXPECT_EQ(order_->step(), step);  // no further checkpoint while the volume completes one
  Advance(Options().volume_timeout);
  EXPECT_THAT(logs_, Contains(HasSubstr("did not answer within 900 s")));
  EXPECT_GT(order_->step(), step);
  core_->OnManifestWritten(manifests_[0].folder, absl::OkStatus(), Now());  // the volume answers after all
  EXPECT_EQ(Seen().last_checkpoint_step(), 10);
}

TEST_F(CheckpointCoreTest, AHungMemberOnlyCostsItsCheckpoint) {
  Train();
  Progress(11);
  Advance(base::seconds(10));
  const int64_t step = order_->step();
  for (int64_t s = 12; s <= step; ++s) Progress(s);
  Advance(Options().checkpoint_timeout);
  EXPECT_THAT(logs_, Contains(AllOf(HasSubstr("was not written in time"), HasSubstr("job-server-0"))));
  EXPECT_THAT(logs_, Not(Contains(HasSubstr("stops at step"))));
  EXPECT_FALSE(exit_code_.has_value());
}

// The volume may take minutes to complete a checkpoint, and training pauses during a hand-over.
TEST_F(CheckpointCoreTest, AHandOverDoesNotWaitForTheManifest) {
  Train();
  Advance(base::seconds(11));
  int64_t step = 11;
  for (; !order_; ++step) Progress(step);
  Checkpointed();
  while (manifests_.empty()) Progress(step++);
  job::v1::HandOverRequest to;
  to.set_term(2);
  ASSERT_THAT(core_->HandOver(to, Now()), IsOk());
  for (const int64_t leased = core_->ledger()->leased(); step <= leased; ++step) Progress(step);
  EXPECT_TRUE(core_->handed_over());
}

TEST_F(CheckpointCoreTest, TheJobIsCompleteWhenItsModelIsWritten) {
  EvaluateAtTheEnd();
  ASSERT_EQ(written_.size(), 1U);
  EXPECT_EQ(written_[0].step, 100);
  EXPECT_EQ(written_[0].transform.columns(0).mean(), 3);
  EXPECT_EQ(written_[0].observation.metrics().at("log_loss"), 0.5);
  EXPECT_EQ(written_[0].plan.stages_size(), 2);
  Advance(base::seconds(700));  // longer than an evaluation may take without progress
  EXPECT_EQ(halts_, 0);
  EXPECT_FALSE(exit_code_.has_value());
  Exported(absl::OkStatus());
  EXPECT_EQ(exit_code_, 0);
  EXPECT_EQ(Seen().phase(), job::v1::JOB_PHASE_COMPLETE);
}

TEST_F(CheckpointCoreTest, AModelThatCannotBeWrittenIsWrittenAgainAndThenFailsTheJobForARestart) {
  EvaluateAtTheEnd();
  for (size_t attempt = 1; !exit_code_ && attempt < 60; ++attempt) {
    ASSERT_EQ(written_.size(), attempt);
    Exported(base::Internal("writing the model into /ck/export: no space left"));
    Advance(base::seconds(30));
  }
  EXPECT_EQ(exit_code_, 1);
  EXPECT_EQ(written_.size(), 21U) << "the first attempt and one every 30 s of final_save_wait";
  EXPECT_THAT(Seen().message(), HasSubstr("no space left"));
}

TEST_F(CheckpointCoreTest, AVolumeThatNeverAnswersDoesNotHoldTheModelForever) {
  EvaluateAtTheEnd();
  Advance(base::seconds(901));
  Advance(base::seconds(30));
  EXPECT_EQ(written_.size(), 2U);
  EXPECT_THAT(logs_, Contains(HasSubstr("the volume did not answer within 900 s")));
  Exported(absl::OkStatus());
  EXPECT_EQ(exit_code_, 0);
}

TEST_F(CheckpointCoreTest, AModelThatIsWrittenDuringARecoveryDoesNotEndTheJob) {
  EvaluateAtTheEnd();
  core_->OnLost("job-server-0", "i-job-server-0", Now());
  Take();
  Exported(absl::OkStatus());
  EXPECT_FALSE(exit_code_.has_value());
}

TEST_F(CheckpointCoreTest, WithoutTheTransformTheJobFailsWithASentence) {
  EvaluateAtTheEnd(false);
  EXPECT_EQ(exit_code_, 1);
  EXPECT_THAT(Seen().message(), HasSubstr("transform of the training data"));
}

}  // namespace
}  // namespace medley::worker
