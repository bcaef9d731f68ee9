// Tests what the state machine does with members that have read other data than the job trains on.
#include "tests/unit/worker/coordinator/core/core_fixture.h"

namespace medley::worker {
namespace {

using base::IsOk;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

class DataCoreTest : public testing::Test {
 protected:
  static CoreOptions Options() {
    CoreOptions options;
    options.epochs = 20;
    options.batch_size = 10;
    options.train_data = "file:///data/train.csv";
    options.test_data = "file:///data/test.csv";
    return options;
  }
  Instant Now() const { return {base::SteadyTime(time_), base::WallTime(base::seconds(1'700'000'000))}; }
  // Stage 0 has one trainer, stage 1 has two, and there is one server.
  void Start(const std::optional<job::v1::CoordinatorState>& journal = std::nullopt) {
    core_.emplace(Options(), Now(), journal);
    plan_ = sim::MakePlan(1, 1, 2, 1, "a");
    ASSERT_THAT(core_->ApplyPlan(plan_, Now()), IsOk());
    for (const job::v1::MemberSlot& slot : plan_.slots()) Hello(slot, "i1");
  }
  void Say(const std::string& member, const job::v1::SessionRequest& message) {
    core_->OnMessage(member, instances_[member], message, Now());
    Take();
  }
  void Hello(const job::v1::MemberSlot& slot, const std::string& instance) {
    instances_[slot.member()] = instance;
    job::v1::SessionRequest message;
    message.mutable_hello()->set_member(slot.member());
    message.mutable_hello()->set_role(slot.role());
    message.mutable_hello()->set_pool(slot.pool());
    message.mutable_hello()->set_instance(instance);
    Say(slot.member(), message);
  }
  void Take() {
    for (Command& command : core_->TakeCommands()) {
      if (auto* send = std::get_if<SendCommand>(&command)) {
        if (send->message.has_prepare()) prepared_ = send->message.prepare().generation();
        if (send->message.has_release()) releases_[send->member] = send->message.release();
        if (send->message.has_evaluate()) evaluating_ = true;
      }
      if (auto* finish = std::get_if<FinishCommand>(&command)) exit_code_ = finish->exit_code;
      if (auto* journal = std::get_if<JournalCommand>(&command)) journal_ = journal->state;
      if (auto* line = std::get_if<LogCommand>(&command)) logs_.push_back(line->message);
    }
  }
  void Advance(base::nanoseconds by) {
    time_ += by;
    core_->Tick(Now());
    Take();
  }
  // Everybody who is not named has read the data "right".
  void Warm(const std::map<std::string, std::string>& digests = {}) {
    const int64_t generation = prepared_;
    for (const job::v1::MemberSlot& slot : plan_.slots()) {
      job::v1::SessionRequest message;
      message.mutable_warmed()->set_generation(generation);
      if (slot.role() == job::v1::MEMBER_ROLE_TRAINER) {
        const auto found = digests.find(slot.member());
        message.mutable_warmed()->set_rows(100);
        message.mutable_warmed()->set_data_digest(found == digests.end() ? "right" : found->second);
        const auto program = programs_.find(slot.member());
        message.mutable_warmed()->set_program(program == programs_.end() ? "p1" : program->second);
      }
      Say(slot.member(), message);
    }
  }
  void Ready(int64_t step = 0) {
    for (const job::v1::MemberSlot& slot : plan_.slots()) {
      job::v1::SessionRequest message;
      message.mutable_ready()->set_generation(prepared_);
      message.mutable_ready()->set_step(step);
      message.mutable_ready()->set_state_samples(10 * step);
      Say(slot.member(), message);
    }
  }
  // One trainer is lost, the others go on, and a new process takes its place.
  void Replace(const std::string& member, const std::string& instance) {
    core_->OnLost(member, instances_[member], Now());
    Take();
    for (const job::v1::MemberSlot& slot : plan_.slots()) {
      if (slot.member() == member) continue;
      job::v1::SessionRequest message;
      message.mutable_halted()->set_generation(core_->active_generation());
      Say(slot.member(), message);
    }
    Advance(base::seconds(4));  // fold_in_wait
    Warm();
    Ready();
    ASSERT_EQ(Seen().phase(), job::v1::JOB_PHASE_TRAINING);
    for (const job::v1::MemberSlot& slot : plan_.slots()) {
      if (slot.member() == member) Hello(slot, instance);
    }
  }
  // All members but one train what is leased; returns the last step.
  int64_t TrainLeased(const std::string& but) {
    const int64_t leased = core_->ledger()->leased();
    for (int64_t step = core_->ledger()->committed() + 1; step <= leased; ++step) {
      for (const job::v1::MemberSlot& slot : plan_.slots()) {
        job::v1::SessionRequest message;
        message.mutable_progress()->set_generation(core_->active_generation());
        message.mutable_progress()->set_step(step);
        message.mutable_progress()->set_state_samples(10 * step);
        if (slot.member() != but) Say(slot.member(), message);
      }
    }
    return leased;
  }
  job::v1::Observation Seen() { return core_->Observe(Now()); }
  std::string Trainer(int index) const { return plan_.slots(index).member(); }

  base::nanoseconds time_{base::seconds(100)};
  std::optional<CoordinatorCore> core_;
  job::v1::ApplyPlanRequest plan_;
  std::map<std::string, std::string> programs_;  // of those who have not compiled "p1"
  std::map<std::string, std::string> instances_;
  std::map<std::string, job::v1::Release> releases_;
  std::optional<job::v1::CoordinatorState> journal_;
  std::vector<std::string> logs_;
  int64_t prepared_ = 0;
  bool evaluating_ = false;
  std::optional<int> exit_code_;
};

TEST_F(DataCoreTest, TheDigestOfTheFirstGenerationIsJournaled) {
  Start();
  Warm();
  Ready();
  EXPECT_EQ(Seen().phase(), job::v1::JOB_PHASE_TRAINING);
  ASSERT_TRUE(journal_);
  EXPECT_EQ(journal_->train_digest(), "right");
}

TEST_F(DataCoreTest, AReplacementThatReadsOtherDataIsRefusedAndTheOthersTrainOn) {
  Start();
  Warm();
  Ready();
  Replace(Trainer(1), "i2");
  const int64_t before = core_->active_generation();
  Warm({{Trainer(1), "reversed"}});
  EXPECT_EQ(core_->active_generation(), before);
  EXPECT_EQ(Seen().phase(), job::v1::JOB_PHASE_TRAINING);
  EXPECT_FALSE(exit_code_.has_value());
  ASSERT_EQ(releases_.size(), 1u);
  EXPECT_EQ(releases_[Trainer(1)].exit_code(), 1);
  EXPECT_EQ(releases_[Trainer(1)].reason(),
            fmt::format("the training data has changed since the job began: {} read file:///data/train.csv with the "
                        "digest reversed, the job uses the data with the digest right; restore the data, or submit a "
                        "new job for the changed data",
                        Trainer(1)));
  EXPECT_THAT(logs_, Contains(HasSubstr("refused a member: the training data has changed")));
  // The right data are back: the next process joins at the end of the leased steps.
  TrainLeased(Trainer(1));
  Advance(base::seconds(10));  // no checkpoint is due yet
  Hello(plan_.slots(1), "i3");
  Warm();
  Ready(TrainLeased(Trainer(1)));
  EXPECT_GT(core_->active_generation(), before);
}

// However often it comes back.
// A replacement of another build would wait for messages that nobody sends.
TEST_F(DataCoreTest, AReplacementWithAnotherProgramIsRefusedAndTheOthersTrainOn) {
  Start();
  Warm();
  Ready();
  Replace(Trainer(1), "i2");
  const int64_t before = core_->active_generation();
  programs_ = {{Trainer(1), "p2"}};
  Warm();
  EXPECT_EQ(core_->active_generation(), before);
  EXPECT_EQ(Seen().phase(), job::v1::JOB_PHASE_TRAINING);
  ASSERT_EQ(releases_.size(), 1u);
  EXPECT_EQ(releases_[Trainer(1)].exit_code(), 1);
  EXPECT_THAT(releases_[Trainer(1)].reason(),
              HasSubstr("compiled the plan to program p2, 2 trainers to p1: the members run different builds"));
  TrainLeased(Trainer(1));
  Advance(base::seconds(10));
  Hello(plan_.slots(1), "i3");
  programs_.clear();
  Warm();
  EXPECT_GT(prepared_, before);
}

TEST_F(DataCoreTest, RefusedReplacementsNeverEndATrainingJob) {
  Start();
  Warm();
  Ready();
  Replace(Trainer(1), "i2");
  int64_t step = 0;
  for (int round = 3; round < 30; ++round) {
    Warm({{Trainer(1), "reversed"}});
    ++step;
    for (const job::v1::MemberSlot& slot : plan_.slots()) {
      job::v1::SessionRequest message;
      message.mutable_progress()->set_generation(core_->active_generation());
      message.mutable_progress()->set_step(step);
      message.mutable_progress()->set_state_samples(10 * step);
      if (slot.member() != Trainer(1)) Say(slot.member(), message);
    }
    Advance(base::seconds(31));
    Hello(plan_.slots(1), fmt::format("i{}", round));
    ASSERT_EQ(exit_code_, std::nullopt) << round;
  }
  EXPECT_EQ(core_->ledger()->committed(), step);
}

TEST_F(DataCoreTest, OfTheFirstMembersThoseThatDifferFromTheFirstAreRefused) {
  Start();
  Warm({{Trainer(1), "other"}});
  ASSERT_EQ(releases_.size(), 1u);
  EXPECT_EQ(releases_.begin()->first, Trainer(1));
  EXPECT_FALSE(exit_code_.has_value());
  Advance(base::seconds(600));  // member_wait: it starts without the member
  Warm();
  Ready();
  EXPECT_EQ(Seen().phase(), job::v1::JOB_PHASE_TRAINING);
}

// For example a suspended job whose data were changed: nobody holds its data any more.
TEST_F(DataCoreTest, AJobWhoseMembersAllReadChangedDataFailsWithTheSentence) {
  job::v1::CoordinatorState journal;
  journal.set_last_generation(3);
  journal.set_from_generation(3);
  journal.set_train_digest("right");
  Start(journal);
  Warm({{Trainer(0), "other"}, {Trainer(1), "other"}, {Trainer(2), "other"}});
  EXPECT_EQ(exit_code_, 2);
  EXPECT_FALSE(Seen().retryable());
  EXPECT_THAT(Seen().message(), AllOf(HasSubstr("the training data has changed"), HasSubstr("digest other"),
                                      HasSubstr("digest right"), HasSubstr("file:///data/train.csv")));
}

TEST_F(DataCoreTest, AfterALossOfTheStateOnlyTheMembersWithOtherDataAreRefused) {
  job::v1::CoordinatorState journal;
  journal.set_last_generation(3);
  journal.set_from_generation(3);
  journal.set_train_digest("right");
  Start(journal);
  Warm({{Trainer(2), "other"}});
  EXPECT_FALSE(exit_code_.has_value());
  ASSERT_EQ(releases_.size(), 1u);
  EXPECT_EQ(releases_.begin()->first, Trainer(2));
  Advance(base::seconds(60));
  Warm();
  Ready();
  EXPECT_EQ(Seen().phase(), job::v1::JOB_PHASE_TRAINING);
}

TEST_F(DataCoreTest, AMemberThatEvaluatesOtherTestDataIsRefused) {
  Start();
  Warm();
  Ready();
  for (int64_t step = 1; step <= 200; ++step) {
    for (const job::v1::MemberSlot& slot : plan_.slots()) {
      job::v1::SessionRequest message;
      message.mutable_progress()->set_generation(core_->active_generation());
      message.mutable_progress()->set_step(step);
      message.mutable_progress()->set_state_samples(10 * step);
      Say(slot.member(), message);
    }
  }
  ASSERT_TRUE(evaluating_);
  job::v1::SessionRequest message;
  message.mutable_evaluated()->set_samples(5);
  message.mutable_evaluated()->set_test_digest("right");
  Say(Trainer(0), message);
  message.mutable_evaluated()->set_test_digest("other");
  Say(Trainer(1), message);
  EXPECT_FALSE(exit_code_.has_value());
  EXPECT_EQ(releases_[Trainer(1)].exit_code(), 1);
  EXPECT_THAT(releases_[Trainer(1)].reason(), AllOf(HasSubstr("the test data has changed"), HasSubstr("/data/test.csv"),
                                                    HasSubstr("digest other"), HasSubstr("digest right")));
  EXPECT_EQ(Seen().phase(), job::v1::JOB_PHASE_RECOVERING);  // and the others evaluate again
}

}  // namespace
}  // namespace medley::worker
