// Tests what the state machine does when checkpoints cannot be found, written or completed.
#include "tests/unit/worker/coordinator/core/checkpoint_fixture.h"

namespace medley::worker {
namespace {

using base::IsOk;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

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
  EXPECT_EQ(exit_code_, 2);  // at once: another attempt would end in the same way
  EXPECT_FALSE(Seen().retryable());
  EXPECT_THAT(Seen().message(), AllOf(HasSubstr("step 10 was saved"), HasSubstr("To start anew, delete the job")));
}

// The coordinator may have been killed between the manifest and the journal.
TEST_F(CheckpointCoreTest, ADamagedOnlyCheckpointDoesNotMeanTheSeedEither) {
  Start(0);
  CheckpointSearch search;
  search.rejected = {"step-00000010-e3: rows-e3-0.mck: crc32 is 1, the manifest says 2"};
  Answer(search);
  EXPECT_FALSE(prepare_.has_value());
  EXPECT_EQ(exit_code_, 2);
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
  EXPECT_EQ(written_[0].observation.metrics().at("logLoss"), 0.5);
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
