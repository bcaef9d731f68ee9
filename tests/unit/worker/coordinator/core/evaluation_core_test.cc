// Tests how the state machine evaluates between two steps, and how it stops early.
#include <gmock/gmock.h>

#include <algorithm>
#include <memory>

#include "tests/unit/worker/coordinator/core/core_fixture.h"

namespace medley::worker {
namespace {

using testing::Contains;
using testing::HasSubstr;

// 100 rows in batches of 10: an epoch has 10 steps, of 30.
class EvaluationCoreTest : public CoreTest {
 protected:
  EvaluationCoreTest() { Restart(std::nullopt); }

  void Restart(const std::optional<job::v1::CoordinatorState>& journal) {
    CoreOptions options = Options();
    options.epochs = 3;
    options.evaluation = {.every_epochs = 1, .early_stopping = EarlyStopping{"logLoss", 1, 0}};
    std::destroy_at(&core_);
    std::construct_at(&core_, options, Now(), journal);
  }
  void TrainTo(int64_t step) {
    if (trained_ == 0) {
      Start();
      Ready(0);
    }
    while (trained_ < step) Progress(++trained_, 0.5);
  }
  void Evaluated(const std::string& member, int64_t samples, double log_loss_sum) {
    job::v1::SessionRequest message;
    message.mutable_evaluated()->set_samples(samples);
    (*message.mutable_evaluated()->mutable_sums())["logLoss"] = log_loss_sum;
    Say(member, message);
  }
  // All members answer; the trainer of the last stage has scored 4 samples.
  void EvaluatedByAll(double log_loss_sum) {
    for (const job::v1::MemberSlot& slot : plan_.slots()) {
      const bool last = slot.role() == job::v1::MEMBER_ROLE_TRAINER && slot.stage() == 1;
      Evaluated(slot.member(), last ? 4 : 0, last ? log_loss_sum : 0);
    }
  }
  const job::v1::SessionResponse& Last() { return sent_["job-0-a-0"].back(); }

  int64_t trained_ = 0;
};

TEST_F(EvaluationCoreTest, NoStepIsLeasedUntilEveryMemberHasEvaluated) {
  TrainTo(9);
  EXPECT_EQ(core_.ledger()->leased(), 10) << "the end of the epoch, although 8 steps may be leased ahead";
  TrainTo(10);
  ASSERT_TRUE(Last().has_evaluate());
  EXPECT_EQ(Last().evaluate().step(), 10);
  EXPECT_EQ(Seen().phase(), job::v1::JOB_PHASE_EVALUATING);
  Evaluated("job-0-a-0", 0, 0);
  Evaluated("job-1-a-0", 4, 2);
  Advance(base::seconds(200));  // no stall: nothing is leased
  EXPECT_EQ(core_.ledger()->leased(), 10);
  EXPECT_EQ(Seen().evaluations_size(), 0);
  Evaluated("job-server-0", 0, 0);
  EXPECT_EQ(Seen().phase(), job::v1::JOB_PHASE_TRAINING);
  EXPECT_EQ(core_.ledger()->leased(), 18);
  ASSERT_EQ(Seen().evaluations_size(), 1);
  const job::v1::EvaluationRecord record = Seen().evaluations(0);
  EXPECT_EQ(record.step(), 10);
  EXPECT_EQ(record.epochs(), 1);
  EXPECT_DOUBLE_EQ(record.loss(), 0.5);
  EXPECT_DOUBLE_EQ(record.metrics().at("logLoss"), 0.5);
  EXPECT_DOUBLE_EQ(Seen().metrics().at("logLoss"), 0.5);
  EXPECT_THAT(logs_, Contains(HasSubstr("evaluated at step 10 of 30, epoch 1/3:")));
}

TEST_F(EvaluationCoreTest, ALossInTheMiddleBeginsTheEvaluationAgain) {
  TrainTo(10);
  Evaluated("job-1-a-0", 4, 400);
  Fault("job-0-a-0", "connection closed", job::v1::FAULT_KIND_EXCHANGE);
  EXPECT_EQ(Seen().phase(), job::v1::JOB_PHASE_RECOVERING);
  Recover(10);
  ASSERT_TRUE(Last().has_evaluate());
  EXPECT_EQ(Last().evaluate().generation(), 2);
  EXPECT_EQ(Last().evaluate().step(), 10);
  EXPECT_EQ(core_.ledger()->leased(), 10);
  EvaluatedByAll(2);
  ASSERT_EQ(Seen().evaluations_size(), 1);
  EXPECT_DOUBLE_EQ(Seen().evaluations(0).metrics().at("logLoss"), 0.5) << "without the interrupted one";
}

TEST_F(EvaluationCoreTest, ASwitchWaitsForTheEvaluation) {
  TrainTo(10);
  second_ = sim::MakePlan(2, 1, 1, 1, "b");
  ASSERT_TRUE(core_.ApplyPlan(second_, Now()).ok());
  Take();
  for (const job::v1::MemberSlot& slot : second_.slots()) {
    if (slot.pool() == "b") Hello(slot);
  }
  for (const auto* plan : {&plan_, &second_}) {
    for (const job::v1::MemberSlot& slot : plan->slots()) {
      job::v1::SessionRequest message;
      message.mutable_warmed()->set_generation(2);
      message.mutable_warmed()->set_rows(100);
      Say(slot.member(), message);
    }
  }
  Advance(base::seconds(300));
  EXPECT_TRUE(Last().has_prepare()) << Last().ShortDebugString();
  EvaluatedByAll(2);
  Advance(base::milliseconds(50));
  ASSERT_TRUE(Last().has_switch_()) << Last().ShortDebugString();
  EXPECT_EQ(Last().switch_().step(), 10);
}

TEST_F(EvaluationCoreTest, ARestartedCoordinatorKnowsWhatWasEvaluated) {
  TrainTo(10);
  job::v1::CoordinatorState journal;
  for (const job::v1::MemberSlot& slot : plan_.slots()) {
    job::v1::SessionRequest message;
    message.mutable_evaluated()->set_samples(slot.stage() == 1 ? 4 : 0);
    (*message.mutable_evaluated()->mutable_sums())["logLoss"] = slot.stage() == 1 ? 2 : 0;
    core_.OnMessage(slot.member(), "i-" + slot.member(), message, Now());
    bool leased = false;
    for (Command& command : core_.TakeCommands()) {
      if (const auto* record = std::get_if<JournalCommand>(&command)) {
        EXPECT_FALSE(leased);
        journal = record->state;
      }
      const auto* send = std::get_if<SendCommand>(&command);
      leased = leased || (send != nullptr && send->message.has_lease());
    }
  }
  ASSERT_EQ(journal.evaluations_size(), 1) << "before a step after it is leased";
  Restart(journal);
  for (const job::v1::MemberSlot& slot : plan_.slots()) {
    job::v1::SessionRequest message;
    message.mutable_hello()->set_member(slot.member());
    message.mutable_hello()->set_role(slot.role());
    message.mutable_hello()->set_pool(slot.pool());
    message.mutable_hello()->set_instance("i-" + slot.member());
    message.mutable_hello()->set_held_generation(1);
    message.mutable_hello()->set_held_step(10);
    Say(slot.member(), message);
  }
  Recover(10);
  EXPECT_EQ(Seen().phase(), job::v1::JOB_PHASE_TRAINING);
  EXPECT_EQ(core_.ledger()->leased(), 18);
}

TEST_F(EvaluationCoreTest, EarlyStoppingEndsTheJob) {
  TrainTo(10);
  EvaluatedByAll(2);
  TrainTo(20);
  EvaluatedByAll(2);  // no better
  ASSERT_TRUE(Last().has_evaluate()) << "of the end";
  EXPECT_TRUE(Last().evaluate().only_transform());
  EXPECT_EQ(core_.ledger()->leased(), 20);
  for (const job::v1::MemberSlot& slot : plan_.slots()) Evaluated(slot.member(), 0, 0);
  EXPECT_EQ(exit_code_, 0);
  EXPECT_EQ(Seen().phase(), job::v1::JOB_PHASE_COMPLETE);
  EXPECT_TRUE(Seen().stopped_early());
  EXPECT_THAT(Seen().message(), HasSubstr("stopped early at step 20: logLoss has not improved"));
  EXPECT_EQ(Seen().samples_done(), 200);
  EXPECT_EQ(Seen().evaluations_size(), 2);
  EXPECT_DOUBLE_EQ(Seen().metrics().at("logLoss"), 0.5);
}

TEST_F(EvaluationCoreTest, TheEndIsPartOfTheCurve) {
  TrainTo(10);
  EvaluatedByAll(3);
  TrainTo(20);
  EvaluatedByAll(2);
  TrainTo(30);
  ASSERT_TRUE(Last().has_evaluate());
  EXPECT_FALSE(Last().evaluate().only_transform());
  EvaluatedByAll(1);
  EXPECT_EQ(exit_code_, 0);
  EXPECT_FALSE(Seen().stopped_early());
  ASSERT_EQ(Seen().evaluations_size(), 3);
  EXPECT_EQ(Seen().evaluations(2).step(), 30);
  EXPECT_EQ(Seen().evaluations(2).epochs(), 3);
}

// Among ten samples with the probability 0.95, one is positive: as weights of classes make it.
class CalibrationCoreTest : public EvaluationCoreTest {
 protected:
  // How often the log says so after two evaluations.
  int64_t Warnings(bool weighs_classes) {
    CoreOptions options = Options();
    options.epochs = 3;
    options.evaluation = {.every_epochs = 1};
    options.weighs_classes = weighs_classes;
    std::destroy_at(&core_);
    std::construct_at(&core_, options, Now(), std::nullopt);
    for (const int64_t step : {10, 20}) {
      TrainTo(step);
      for (const job::v1::MemberSlot& slot : plan_.slots()) {
        job::v1::SessionRequest message;
        job::v1::Evaluated& evaluated = *message.mutable_evaluated();
        if (slot.role() == job::v1::MEMBER_ROLE_TRAINER && slot.stage() == 1) Score(evaluated);
        Say(slot.member(), message);
      }
      EXPECT_EQ(Seen().evaluations_size(), step / 10);
    }
    return std::ranges::count_if(logs_, [](const std::string& line) {
      return line.find("spec.training.classWeights shift them") != std::string::npos;
    });
  }

  static void Score(job::v1::Evaluated& evaluated) {
    evaluated.set_samples(10);
    (*evaluated.mutable_sums())["logLoss"] = 1;
    job::v1::ScoreHistogram& histogram = *evaluated.add_histograms();
    for (int bucket = 0; bucket < 10; ++bucket) {
      histogram.add_positives(bucket == 9 ? 1 : 0);
      histogram.add_negatives(bucket == 9 ? 9 : 0);
    }
  }
};

TEST_F(CalibrationCoreTest, WarnsOnceThatWeightsOfClassesShiftProbabilities) {
  EXPECT_EQ(Warnings(true), 1);
  EXPECT_THAT(logs_, Contains(HasSubstr("probabilities differ from the rates of positives by 0.85 on average")));
}

TEST_F(CalibrationCoreTest, SaysNothingWithoutWeights) { EXPECT_EQ(Warnings(false), 0); }

}  // namespace
}  // namespace medley::worker
