// Tests from which checkpoint the state machine continues when some are damaged, and that it never tries without end.
#include "tests/unit/worker/coordinator/core/checkpoint_fixture.h"

namespace medley::worker {
namespace {

using base::IsOk;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;

class RestoreCoreTest : public CheckpointCoreTest {
 protected:
  // For the generation that is being prepared.
  void RestoreFault(const std::string& member, bool damaged,
                    const std::string& text = "dense: the payload is damaged") {
    job::v1::SessionRequest message;
    message.mutable_fault()->set_generation(prepare_->generation());
    message.mutable_fault()->set_kind(job::v1::FAULT_KIND_RESTORE);
    message.mutable_fault()->set_permanent(damaged);
    message.mutable_fault()->set_message(text);
    Say(member, message);
  }
  void Ready(int64_t step) {
    const int64_t generation = prepare_->generation();
    All([&](auto& message) {
      message.mutable_warmed()->set_generation(generation);
      message.mutable_warmed()->set_rows(kRows);
    });
    All([&](auto& message) {
      message.mutable_ready()->set_generation(generation);
      message.mutable_ready()->set_step(step);
      message.mutable_ready()->set_state_samples(step * 10);
    });
  }
  // What the shell finds on a volume with the checkpoints of these steps, all of which verify.
  void AnswerFrom(const std::vector<int64_t>& steps) {
    CheckpointSearch search;
    for (const int64_t step : steps) {
      const CheckpointSearch found = Found(step);
      const auto known = searches_.back().unusable.find(found.newest->folder);
      if (known == searches_.back().unusable.end()) {
        search.newest = found.newest;
        break;
      }
      search.rejected.push_back(known->first + ": " + known->second);
    }
    Answer(search);
  }
};

TEST_F(RestoreCoreTest, DamageThatAMemberFindsLeadsToTheCheckpointBefore) {
  Start(10);
  AnswerFrom({10, 5});
  ASSERT_EQ(prepare_->checkpoint(), "step-00000010-e3");
  RestoreFault("job-server-0", true);
  ASSERT_EQ(searches_.size(), 2u);  // at once
  EXPECT_THAT(searches_[1].unusable, Contains(Pair("step-00000010-e3", HasSubstr("job-server-0 could not restore"))));
  AnswerFrom({10, 5});
  ASSERT_EQ(prepare_->checkpoint(), "step-00000005-e3");
  Ready(5);
  EXPECT_EQ(core_->ledger()->committed(), 5);  // the samples after it are trained again
  EXPECT_EQ(Seen().phase(), job::v1::JOB_PHASE_TRAINING);
  EXPECT_EQ(Seen().last_checkpoint_step(), 5);
  ASSERT_EQ(Seen().switches_size(), 1);
  EXPECT_THAT(Seen().switches(0).reason(),
              AllOf(HasSubstr("continues from the checkpoint of step 5"), HasSubstr("step-00000010-e3"),
                    HasSubstr("job-server-0 could not restore"), HasSubstr("the payload is damaged")));
}

TEST_F(RestoreCoreTest, EveryMemberMayReportTheSameDamage) {
  Start(10);
  AnswerFrom({10, 5});
  const auto abandoned = prepare_;
  for (const job::v1::MemberSlot& slot : plan_.slots()) {
    job::v1::SessionRequest message;
    message.mutable_fault()->set_generation(abandoned->generation());
    message.mutable_fault()->set_kind(job::v1::FAULT_KIND_RESTORE);
    message.mutable_fault()->set_permanent(true);
    message.mutable_fault()->set_message("cut off");
    Say(slot.member(), message);
  }
  EXPECT_EQ(searches_.size(), 2u);
  AnswerFrom({10, 5});
  EXPECT_EQ(prepare_->checkpoint(), "step-00000005-e3");
  EXPECT_FALSE(exit_code_.has_value());
}

TEST_F(RestoreCoreTest, WhenNoneIsWholeTheJobFailsAtOnceAndSaysHowToStartAnew) {
  Start(10);
  AnswerFrom({10, 5});
  RestoreFault("job-server-0", true, "rows-e3-0.mck: cut off");
  AnswerFrom({10, 5});
  RestoreFault("job-server-0", true, "rows-e3-0.mck: of another job");
  AnswerFrom({10, 5});
  EXPECT_EQ(exit_code_, 2);
  EXPECT_FALSE(Seen().retryable());
  EXPECT_THAT(Seen().message(),
              AllOf(HasSubstr("no checkpoint can be restored"), HasSubstr("step-00000010-e3: job-server-0"),
                    HasSubstr("rows-e3-0.mck: cut off"), HasSubstr("step-00000005-e3: job-server-0"),
                    HasSubstr("of another job"), HasSubstr("delete the job and create it again"),
                    HasSubstr("spec.checkpoint.from")));
}

// One folder costs one attempt, however many there are: the budget of recoveries is for what repeats.
TEST_F(RestoreCoreTest, ManyDamagedCheckpointsDoNotSpendTheBudget) {
  Start(20, 25);
  std::vector<int64_t> steps;
  for (int64_t step = 20; step >= 1; --step) steps.push_back(step);
  AnswerFrom(steps);
  for (int64_t step = 20; step >= 2; --step) {
    ASSERT_EQ(prepare_->checkpoint(), fmt::format("step-{:08}-e3", step));
    RestoreFault("job-server-0", true);
    AnswerFrom(steps);
  }
  EXPECT_EQ(prepare_->checkpoint(), "step-00000001-e3");
  Ready(1);
  EXPECT_EQ(Seen().phase(), job::v1::JOB_PHASE_TRAINING);
  EXPECT_THAT(Seen().switches(0).reason(), HasSubstr("and 15 more"));
}

TEST_F(RestoreCoreTest, AnErrorThatMayPassIsTriedAgainAndThenTheOneBefore) {
  Start(10);
  AnswerFrom({10, 5});
  for (int attempt = 1; attempt <= 3; ++attempt) {
    ASSERT_EQ(prepare_->checkpoint(), "step-00000010-e3") << attempt;
    RestoreFault("job-server-0", false, "reading: i/o error");
    Advance(base::seconds(30));
    AnswerFrom({10, 5});
  }
  EXPECT_EQ(prepare_->checkpoint(), "step-00000005-e3");
  EXPECT_FALSE(exit_code_.has_value());
}

TEST_F(RestoreCoreTest, AnErrorThatMayPassOfTheOnlyCheckpointLetsTheJobBeTriedAgain) {
  Start(10);
  AnswerFrom({10});
  for (int attempt = 1; attempt <= 10 && !exit_code_; ++attempt) {
    RestoreFault("job-server-0", false, "reading: i/o error");
    Advance(base::seconds(30));
    AnswerFrom({10});
  }
  EXPECT_EQ(exit_code_, 1);
  EXPECT_TRUE(Seen().retryable());
  EXPECT_THAT(Seen().message(), HasSubstr("reading: i/o error"));
}

TEST_F(RestoreCoreTest, ACheckpointThatCouldNotBeReadLetsTheJobBeTriedAgain) {
  Start(10);
  CheckpointSearch search;
  search.rejected = {"step-00000010-e3: rows-e3-0.mck: Permission denied"};
  search.unreadable = true;
  Answer(search);
  EXPECT_EQ(exit_code_, 1);
  EXPECT_TRUE(Seen().retryable());
}

// Without a manifest a folder looks as if it had never been completed, but the journal knows.
TEST_F(RestoreCoreTest, ALostManifestIsSaid) {
  Start(10);
  CheckpointSearch search = Found(5);
  search.incomplete = {{13, "step-00000013-e3: it has no manifest"}, {10, "step-00000010-e3: it has no manifest"}};
  Answer(search);
  Ready(5);
  EXPECT_THAT(Seen().switches(0).reason(),
              AllOf(HasSubstr("step-00000010-e3: it has no manifest"), Not(HasSubstr("step-00000013"))));
}

TEST_F(RestoreCoreTest, ALostFolderIsSaid) {
  Start(10);
  Answer(Found(5));
  Ready(5);
  EXPECT_THAT(Seen().switches(0).reason(), HasSubstr("that of step 10 is no longer on the volume"));
}

TEST_F(RestoreCoreTest, BothManifestsLostFailTheJobWithBothNames) {
  Start(10);
  CheckpointSearch search;
  search.incomplete = {{10, "step-00000010-e3: it has no manifest"}, {5, "step-00000005-e3: it has no manifest"}};
  Answer(search);
  EXPECT_EQ(exit_code_, 2);
  EXPECT_THAT(Seen().message(), AllOf(HasSubstr("step-00000010-e3"), HasSubstr("step-00000005-e3")));
}

// The folder is whole, but its ledger cannot be that of this job: an assertion would end the coordinator.
TEST_F(RestoreCoreTest, ALedgerThatDoesNotFitIsDamage) {
  const auto with = [](int64_t step, const auto& change) {
    CheckpointSearch search = Found(step);
    change(*search.newest);
    return search;
  };
  const CheckpointSearch wrong[] = {
      with(10, [](CheckpointPosition& position) { position.ledger.set_rows(0); }),
      with(10, [](CheckpointPosition& position) { position.ledger.set_rows(kRows + 1); }),
      with(10, [](CheckpointPosition& position) { position.ledger.set_batch_size(7); }),
      with(10, [](CheckpointPosition& position) { position.ledger.set_committed_step(1'000'000); }),
      with(10,
           [](CheckpointPosition& position) {
             position.step = 101;
             position.ledger.set_epochs(100);
             position.ledger.set_committed_step(101);
           }),
  };
  for (const CheckpointSearch& search : wrong) {
    searches_.clear();
    prepare_.reset();
    Start(10);
    Answer(search);
    ASSERT_EQ(searches_.size(), 2u);
    EXPECT_TRUE(searches_[1].unusable.contains("step-00000010-e3"));
    Answer(Found(5));
    EXPECT_EQ(prepare_->checkpoint(), "step-00000005-e3");
  }
}

TEST_F(RestoreCoreTest, ALastCheckpointThatWasDamagedIsWrittenAgain) {
  EvaluateAtTheEnd();
  const std::string first = order_->folder();
  Exported(base::DataLoss("the checkpoint of step 100 cannot be read: rows-e4-0.mck: its digest is 1"));
  EXPECT_FALSE(exit_code_.has_value());
  Advance(base::seconds(2));
  EXPECT_EQ(order_->folder(), first + "-1");  // the members still hold its state
  Checkpointed();
  core_->OnManifestWritten(order_->folder(), absl::OkStatus(), Now());
  Take();
  ASSERT_EQ(written_.size(), 2u);
  Exported(absl::OkStatus());
  EXPECT_EQ(exit_code_, 0);
  EXPECT_EQ(Seen().phase(), job::v1::JOB_PHASE_COMPLETE);
}

TEST_F(RestoreCoreTest, ALastCheckpointThatIsAlwaysDamagedEndsTheJob) {
  EvaluateAtTheEnd();
  int rounds = 0;
  for (; rounds < 100 && !exit_code_; ++rounds) {
    const size_t exports = written_.size();
    const std::string folder = order_->folder();
    Exported(base::DataLoss("its digest is 1"));
    for (int wait = 0; wait < 3 && !exit_code_ && written_.size() == exports; ++wait) {
      Advance(base::seconds(30));
      if (order_->folder() == folder) continue;
      Checkpointed();
      core_->OnManifestWritten(order_->folder(), absl::OkStatus(), Now());
      Take();
    }
  }
  EXPECT_LT(rounds, 40);
  EXPECT_EQ(exit_code_, 1);
  EXPECT_THAT(Seen().message(), HasSubstr("its digest is 1"));
}

}  // namespace
}  // namespace medley::worker
