// The state machine of a job with checkpoints, driven by hand.
#pragma once

#include <gmock/gmock.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/testing/status_matchers.h"
#include "tests/unit/worker/coordinator/core/sim_world.h"
#include "worker/coordinator/core/core.h"

namespace medley::worker {

// A job with one stage of each kind whose journal says that steps were trained and, if `saved` > 0, saved.
class CheckpointCoreTest : public testing::Test {
 protected:
  static constexpr int64_t kRows = 100;

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
    options.is_program = is_program_;
    core_ = std::make_unique<CoordinatorCore>(options, Now(), journal);
    plan_ = sim::MakePlan(1, 1, 1, 1, "a");
    ASSERT_THAT(core_->ApplyPlan(plan_, Now()), base::IsOk());
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
    EXPECT_THAT(ledger.ResetTo(step), base::IsOk());
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
        if (send->message.has_drain()) drained_ = send->message.drain().step();
        if (send->message.has_checkpoint()) order_ = send->message.checkpoint();
        if (send->message.has_halt()) ++halts_;
        if (send->message.has_release()) released_.insert(send->member);
        for (const auto& step : send->message.lease().steps()) saved_steps_.push_back(step.saved_step());
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
  void Progress(int64_t step, std::optional<int64_t> resumed_from = std::nullopt) {
    All([&](auto& message) {
      if (resumed_from) message.mutable_progress()->set_resumed_from(*resumed_from);
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
      (*message.mutable_evaluated()->mutable_sums())["logLoss"] = 1;
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
  bool is_program_ = false;
  std::vector<ExportCommand> written_;
  std::optional<job::v1::Prepare> prepare_;
  std::optional<job::v1::Checkpoint> order_;
  std::optional<int> exit_code_;
  std::vector<std::string> logs_;
  int64_t drained_ = 0;
  int halts_ = 0;
  std::set<std::string> released_;
  std::vector<int64_t> saved_steps_;  // as leases say
};

}  // namespace medley::worker
