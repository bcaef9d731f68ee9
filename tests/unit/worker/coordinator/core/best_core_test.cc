// Tests how the state machine keeps the best model, and with which model the job ends.
#include "tests/unit/worker/coordinator/core/checkpoint_fixture.h"

namespace medley::worker {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

// 100 rows in batches of 10: an epoch has 10 steps, of 100. Training begins at step 10, from a checkpoint.
class BestCoreTest : public CheckpointCoreTest {
 protected:
  explicit BestCoreTest(bool validation = false) : validation_(validation) { Begin(std::nullopt); }

  void Begin(const std::optional<job::v1::CoordinatorState>& journal) {
    CoreOptions options = Options();
    options.checkpoint_interval = base::seconds(100'000);
    options.exports = true;
    options.evaluation = {.every_epochs = 1, .early_stopping = EarlyStopping{"auc", 2, 0}};
    options.selection = {.metric = "auc", .validation = validation_, .test = true};
    core_ = std::make_unique<CoordinatorCore>(options, Now(), journal);
    generation_ = 0;
    if (journal) return;
    plan_ = sim::MakePlan(1, 1, 1, 1, "a");
    ASSERT_THAT(core_->ApplyPlan(plan_, Now()), base::IsOk());
    Collect();
    HelloAll(0, 0);
    Answer2(CheckpointSearch());
    Switch(0);
  }
  void HelloAll(int64_t generation, int64_t step) {
    Each([&](auto& message, const job::v1::MemberSlot& slot) {
      message.mutable_hello()->set_member(slot.member());
      message.mutable_hello()->set_role(slot.role());
      message.mutable_hello()->set_pool(slot.pool());
      message.mutable_hello()->set_instance("i-" + slot.member());
      message.mutable_hello()->set_held_generation(generation);
      message.mutable_hello()->set_held_step(step);
    });
  }
  // As Take, and keeps the journal and the evaluations.
  void Collect() {
    for (Command& command : core_->TakeCommands()) {
      if (auto* record = std::get_if<JournalCommand>(&command)) journal_ = record->state;
      if (auto* manifest = std::get_if<WriteManifestCommand>(&command)) manifests_.push_back(*manifest);
      if (auto* prune = std::get_if<PruneCommand>(&command)) {
        EXPECT_EQ(journal_.best().folder(), prune->best) << "journaled before anything is removed";
        pruned_.push_back(prune->best);
      }
      if (auto* order = std::get_if<ExportCommand>(&command)) written_.push_back(*order);
      if (auto* finish = std::get_if<FinishCommand>(&command)) exit_code_ = finish->exit_code;
      if (auto* line = std::get_if<LogCommand>(&command)) logs_.push_back(line->message);
      if (auto* send = std::get_if<SendCommand>(&command)) {
        if (send->message.has_prepare()) prepare_ = send->message.prepare();
        if (send->message.has_checkpoint()) order_ = send->message.checkpoint();
        if (send->message.has_evaluate()) evaluate_ = send->message.evaluate();
      }
    }
  }
  template <typename Fill>
  void Each(Fill fill) {
    for (const job::v1::MemberSlot& slot : plan_.slots()) {
      job::v1::SessionRequest message;
      fill(message, slot);
      core_->OnMessage(slot.member(), "i-" + slot.member(), message, Now());
      Collect();
    }
  }
  void Answer2(const CheckpointSearch& found) {
    core_->OnCheckpointFound(found, Now());
    Collect();
  }
  // All members build the prepared generation and have its state.
  void Switch(int64_t step) {
    generation_ = prepare_->generation();
    Each([&](auto& message, const auto&) {
      message.mutable_warmed()->set_generation(generation_);
      message.mutable_warmed()->set_rows(kRows);
    });
    Each([&](auto& message, const auto&) {
      message.mutable_ready()->set_generation(generation_);
      message.mutable_ready()->set_step(step);
      message.mutable_ready()->set_state_samples(10 * step);
    });
    ASSERT_EQ(core_->active_generation(), generation_);
  }
  void TrainTo(int64_t step) {
    for (int64_t at = core_->ledger()->committed() + 1; at <= step; ++at) {
      Each([&](auto& message, const auto&) {
        message.mutable_progress()->set_generation(generation_);
        message.mutable_progress()->set_step(at);
      });
    }
  }
  void Evaluate(double auc) {
    ASSERT_TRUE(evaluate_.has_value());
    const bool scores = !evaluate_->only_transform();
    evaluate_.reset();
    Each([&](auto& message, const job::v1::MemberSlot& slot) {
      const bool last = slot.role() == job::v1::MEMBER_ROLE_TRAINER && slot.stage() == 1;
      message.mutable_evaluated()->set_samples(scores && last ? 1 : 0);
      if (scores && last) (*message.mutable_evaluated()->mutable_sums())["auc"] = auc;
      message.mutable_evaluated()->mutable_transform();
    });
  }
  void Save(const absl::Status& status = absl::OkStatus()) {
    ASSERT_TRUE(order_.has_value());
    const job::v1::Checkpoint order = *std::exchange(order_, std::nullopt);
    Each([&](auto& message, const auto&) { message.mutable_checkpointed()->set_step(order.step()); });
    core_->OnManifestWritten(order.folder(), status, Now());
    Collect();
  }
  void Pass(base::nanoseconds by) {
    time_ += by;
    core_->Tick(Now());
    Collect();
  }
  void Written(const absl::Status& status = absl::OkStatus()) {
    core_->OnExported(written_.back().step, status, Now());
    Collect();
  }
  // The best model is that of step 10; the two that follow are worse, so the training stops at step 30.
  void TrainUntilItStops() {
    TrainTo(10);
    Evaluate(0.711);
    Save();
    TrainTo(20);
    Evaluate(0.65);
    TrainTo(30);
    Evaluate(0.619);
    Save();  // the end
  }

  const bool validation_;
  int64_t generation_ = 0;
  job::v1::CoordinatorState journal_;
  std::optional<job::v1::Evaluate> evaluate_;
  std::vector<std::string> pruned_;
};

class ValidationCoreTest : public BestCoreTest {
 protected:
  ValidationCoreTest() : BestCoreTest(true) {}
};

// AUC 0.711 after the first epoch, 0.619 at the end: the export was the worst model.
TEST_F(BestCoreTest, EarlyStoppingExportsTheBestModelAndNotTheLast) {
  TrainUntilItStops();
  ASSERT_TRUE(evaluate_.has_value());
  EXPECT_TRUE(evaluate_->only_transform());
  Evaluate(0);
  ASSERT_EQ(written_.size(), 1U);
  EXPECT_EQ(written_[0].step, 10);
  EXPECT_EQ(written_[0].folder, "step-00000010-e1");
  EXPECT_EQ(written_[0].observation.metrics().at("auc"), 0.711) << "of the exported model";
  Written();
  EXPECT_EQ(exit_code_, 0);
  const job::v1::Observation seen = Seen();
  EXPECT_EQ(seen.phase(), job::v1::JOB_PHASE_COMPLETE);
  EXPECT_EQ(seen.metrics().at("auc"), 0.711);
  EXPECT_EQ(seen.best().step(), 10);
  EXPECT_EQ(seen.best().epochs(), 1);
  EXPECT_EQ(seen.best().metric(), "auc");
  EXPECT_EQ(seen.best().value(), 0.711);
  EXPECT_EQ(seen.best().data(), job::v1::EVALUATION_DATA_TEST);
  EXPECT_EQ(seen.exported().step(), 10);
  EXPECT_TRUE(seen.exported().best());
  EXPECT_EQ(seen.samples_done(), 300) << "all that were trained";
  EXPECT_EQ(seen.evaluations_size(), 3);
}

TEST_F(BestCoreTest, NoStepIsLeasedUntilTheBestModelIsSaved) {
  TrainTo(10);
  Evaluate(0.5);
  EXPECT_EQ(core_->ledger()->leased(), 10);
  EXPECT_FALSE(Seen().has_best()) << "it is not complete yet";
  Save();
  EXPECT_GT(core_->ledger()->leased(), 10);
  EXPECT_EQ(journal_.best().folder(), "step-00000010-e1");
  EXPECT_THAT(pruned_, testing::ElementsAre("step-00000010-e1"));
  TrainTo(20);
  Evaluate(0.4);
  EXPECT_FALSE(order_.has_value()) << "it is no better";
  EXPECT_GT(core_->ledger()->leased(), 20);
}

TEST_F(BestCoreTest, EqualValuesAreNotBetter) {
  TrainTo(10);
  Evaluate(0.5);
  Save();
  TrainTo(20);
  Evaluate(0.5);
  EXPECT_FALSE(order_.has_value());
  EXPECT_EQ(Seen().best().step(), 10);
}

TEST_F(BestCoreTest, ACoordinatorThatIsKilledBeforeTheCheckpointIsCompleteSavesTheModelAgain) {
  TrainTo(10);
  Evaluate(0.711);
  ASSERT_TRUE(order_.has_value());
  order_.reset();
  Begin(journal_);  // the evaluation is journaled, its checkpoint is not complete
  Collect();
  HelloAll(1, 10);
  Each([&](auto& message, const auto&) {
    message.mutable_halted()->set_generation(1);
    message.mutable_halted()->set_applied_step(10);
    message.mutable_halted()->set_undo_to_step(9);
  });
  Switch(10);
  EXPECT_EQ(core_->ledger()->leased(), 10) << "the model of step 10 must not be lost";
  Save();
  EXPECT_EQ(Seen().best().step(), 10);
  EXPECT_EQ(Seen().best().value(), 0.711);
  EXPECT_GT(core_->ledger()->leased(), 10);
}

TEST_F(BestCoreTest, AVolumeThatFailsDoesNotStopTheTraining) {
  TrainTo(10);
  Evaluate(0.6);
  Save();
  TrainTo(20);
  Evaluate(0.7);
  for (int attempt = 1; attempt <= 3; ++attempt) {
    ASSERT_TRUE(order_.has_value()) << attempt;
    EXPECT_EQ(core_->ledger()->leased(), 20);
    Save(base::ResourceExhausted("no space left on device"));
    Pass(base::seconds(30));
  }
  EXPECT_FALSE(order_.has_value());
  EXPECT_GT(core_->ledger()->leased(), 20);
  EXPECT_EQ(Seen().best().step(), 10) << "the one that is kept";
  EXPECT_THAT(logs_, Contains(AllOf(HasSubstr("the model of step 20 is the best so far, but could not be saved"),
                                    HasSubstr("that of step 10 is kept"))));
  TrainTo(30);
  Evaluate(0.65);
  Save();
  EXPECT_EQ(Seen().best().step(), 30) << "better than the one that is kept";
}

TEST_F(BestCoreTest, ADamagedBestModelIsDroppedAndTheLastIsExported) {
  TrainUntilItStops();
  Evaluate(0);
  Written(base::DataLoss("step-00000010-e1: dense-e1-t1-0.mck: the file does not exist"));
  ASSERT_EQ(written_.size(), 2U);
  EXPECT_EQ(written_[1].step, 30);
  EXPECT_EQ(written_[1].folder, "");
  Written();
  EXPECT_EQ(exit_code_, 0);
  EXPECT_FALSE(Seen().exported().best());
  EXPECT_EQ(Seen().exported().step(), 30);
  EXPECT_EQ(Seen().metrics().at("auc"), 0.619) << "of the exported model";
  EXPECT_THAT(logs_, Contains(AllOf(HasSubstr("the best model, of step 10, cannot be used"),
                                    HasSubstr("dense-e1-t1-0.mck: the file does not exist"))));
}

TEST_F(ValidationCoreTest, TheTestDataAreSeenOnceByTheExportedModel) {
  TrainTo(10);
  EXPECT_EQ(evaluate_->data(), job::v1::EVALUATION_DATA_VALIDATION);
  TrainUntilItStops();
  ASSERT_TRUE(prepare_.has_value());
  EXPECT_EQ(prepare_->generation(), 2) << "which restores the exported model";
  EXPECT_EQ(prepare_->origin(), job::v1::STATE_ORIGIN_CHECKPOINT);
  EXPECT_EQ(prepare_->checkpoint(), "step-00000010-e1");
  EXPECT_EQ(Seen().phase(), job::v1::JOB_PHASE_EVALUATING);
  evaluate_.reset();
  Switch(10);
  ASSERT_TRUE(evaluate_.has_value());
  EXPECT_EQ(evaluate_->data(), job::v1::EVALUATION_DATA_TEST);
  EXPECT_EQ(evaluate_->step(), 10);
  EXPECT_FALSE(evaluate_->only_transform());
  Evaluate(0.69);
  ASSERT_EQ(written_.size(), 1U);
  EXPECT_EQ(written_[0].folder, "step-00000010-e1");
  Written();
  EXPECT_EQ(exit_code_, 0);
  const job::v1::Observation seen = Seen();
  EXPECT_EQ(seen.metrics().at("auc"), 0.69) << "on the test data";
  EXPECT_TRUE(seen.metrics().contains("test_samples"));
  EXPECT_EQ(seen.best().value(), 0.711) << "on the validation data";
  EXPECT_TRUE(seen.best().metrics().contains("validation_samples"));
  EXPECT_EQ(seen.step(), 30);
  EXPECT_EQ(seen.samples_done(), 300);
  EXPECT_EQ(seen.switches_size(), 0) << "no change of the plan";
  EXPECT_EQ(seen.evaluations_size(), 3);
}

TEST_F(ValidationCoreTest, AnExportedModelThatCannotBeRestoredIsTheLastOne) {
  TrainUntilItStops();
  job::v1::SessionRequest message;
  message.mutable_fault()->set_generation(2);
  message.mutable_fault()->set_kind(job::v1::FAULT_KIND_RESTORE);
  message.mutable_fault()->set_permanent(true);
  message.mutable_fault()->set_message("rows-e1-0.mck: crc32 is 1, the manifest says 2");
  evaluate_.reset();
  core_->OnMessage("job-server-0", "i-job-server-0", message, Now());
  Collect();
  ASSERT_TRUE(evaluate_.has_value()) << "of the last model, whose state the members hold";
  EXPECT_EQ(evaluate_->step(), 30);
  EXPECT_EQ(evaluate_->data(), job::v1::EVALUATION_DATA_TEST);
  Evaluate(0.6);
  ASSERT_EQ(written_.size(), 1U);
  EXPECT_EQ(written_[0].step, 30);
  Written();
  EXPECT_EQ(exit_code_, 0);
  EXPECT_FALSE(Seen().exported().best());
  EXPECT_EQ(Seen().metrics().at("auc"), 0.6);
  EXPECT_THAT(logs_, Contains(AllOf(HasSubstr("the best model, of step 10, cannot be used"), HasSubstr("crc32"))));
}

// The members hold the state of step 10, the ledger is at step 30.
TEST_F(ValidationCoreTest, ALossDuringTheLastEvaluationBeginsTheEndAgain) {
  TrainUntilItStops();
  Switch(10);
  core_->OnLost("job-1-a-0", "i-job-1-a-0", Now());
  Collect();
  for (const job::v1::MemberSlot& slot : plan_.slots()) {
    if (slot.member() == "job-1-a-0") continue;
    job::v1::SessionRequest message;
    message.mutable_halted()->set_generation(2);
    message.mutable_halted()->set_applied_step(10);
    message.mutable_halted()->set_undo_to_step(10);
    core_->OnMessage(slot.member(), "i-" + slot.member(), message, Now());
    Collect();
  }
  HelloAll(0, 0);
  Pass(base::seconds(30));
  Answer2(Found(30, 1));
  ASSERT_EQ(prepare_->checkpoint(), "step-00000030-e1") << "the state of the ledger";
  Switch(30);
  EXPECT_EQ(core_->ledger()->committed(), 30);
  ASSERT_EQ(prepare_->checkpoint(), "step-00000010-e1") << "the exported model again";
  Switch(10);
  Evaluate(0.69);
  Written();
  EXPECT_EQ(exit_code_, 0);
  EXPECT_EQ(Seen().exported().step(), 10);
  EXPECT_EQ(Seen().metrics().at("auc"), 0.69);
}

}  // namespace
}  // namespace medley::worker
