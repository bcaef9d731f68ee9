// A state machine with two stages of one trainer each and one server, whose members say what a test wants.
#pragma once

#include <gmock/gmock.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/testing/status_matchers.h"
#include "tests/unit/worker/coordinator/core/sim_world.h"
#include "worker/coordinator/core/core.h"

namespace medley::worker {

class CoreTest : public testing::Test {
 protected:
  explicit CoreTest(const CoreOptions& options = Options()) : core_(options, Now(), std::nullopt) {}
  static CoreOptions Options() {
    CoreOptions options;
    options.epochs = 2;
    options.batch_size = 10;
    return options;
  }
  Instant Now() const { return {base::SteadyTime(time_), base::WallTime(base::seconds(1'700'000'000))}; }

  void Say(const std::string& member, const job::v1::SessionRequest& message) {
    core_.OnMessage(member, "i-" + member, message, Now());
    Take();
  }
  void Hello(const job::v1::MemberSlot& slot) {
    job::v1::SessionRequest message;
    message.mutable_hello()->set_member(slot.member());
    message.mutable_hello()->set_role(slot.role());
    message.mutable_hello()->set_pool(slot.pool());
    message.mutable_hello()->set_instance("i-" + slot.member());
    Say(slot.member(), message);
  }
  void Take() {
    for (Command& command : core_.TakeCommands()) {
      if (auto* send = std::get_if<SendCommand>(&command)) sent_[send->member].push_back(send->message);
      if (auto* finish = std::get_if<FinishCommand>(&command)) exit_code_ = finish->exit_code;
      if (auto* log = std::get_if<LogCommand>(&command)) logs_.push_back(log->message);
    }
  }
  void Advance(base::nanoseconds by) {
    time_ += by;
    core_.Tick(Now());
    Take();
  }
  // Starts two stages of one trainer each and one server. `rows` are the numbers of rows that the members report in
  // Warmed.
  void Start(std::map<std::string, int64_t> rows = {}) {
    plan_ = sim::MakePlan(1, 1, 1, 1, "a");
    ASSERT_THAT(core_.ApplyPlan(plan_, Now()), base::IsOkAndHolds(1));
    Take();
    for (const job::v1::MemberSlot& slot : plan_.slots()) Hello(slot);
    for (const job::v1::MemberSlot& slot : plan_.slots()) {
      job::v1::SessionRequest message;
      message.mutable_warmed()->set_generation(1);
      const auto found = rows.find(slot.member());
      message.mutable_warmed()->set_rows(found == rows.end() ? 100 : found->second);
      Say(slot.member(), message);
    }
  }
  void Ready(int64_t samples, int64_t generation = 1, int64_t step = 0) {
    for (const job::v1::MemberSlot& slot : plan_.slots()) {
      job::v1::SessionRequest message;
      message.mutable_ready()->set_generation(generation);
      message.mutable_ready()->set_step(step);
      message.mutable_ready()->set_state_samples(samples);
      Say(slot.member(), message);
    }
  }
  void Fault(const std::string& member, const std::string& text, job::v1::FaultKind kind) {
    job::v1::SessionRequest message;
    message.mutable_fault()->set_generation(1);
    message.mutable_fault()->set_step(2);
    message.mutable_fault()->set_message(text);
    message.mutable_fault()->set_kind(kind);
    Say(member, message);
  }
  void PermanentFault(const std::string& member, int64_t generation) {
    job::v1::SessionRequest message;
    message.mutable_fault()->set_generation(generation);
    message.mutable_fault()->set_message("file:///data/train.csv: no such file");
    message.mutable_fault()->set_permanent(true);
    Say(member, message);
  }
  // While plan 1 trains, plan 2 on pool b is prepared.
  void PrepareSecondPlan() {
    Start();
    Ready(0);
    Progress(1, 0.5);
    second_ = sim::MakePlan(2, 1, 1, 1, "b");
    ASSERT_THAT(core_.ApplyPlan(second_, Now()), base::IsOkAndHolds(2));
    Take();
    for (const job::v1::MemberSlot& slot : second_.slots()) {
      if (slot.pool() == "b") Hello(slot);
    }
    ASSERT_TRUE(sent_["job-0-b-0"].back().has_prepare());
  }
  // All members report `step` of generation 1 and continue from there as generation 2.
  void Recover(int64_t step) {
    for (const job::v1::MemberSlot& slot : plan_.slots()) {
      job::v1::SessionRequest message;
      message.mutable_halted()->set_generation(1);
      message.mutable_halted()->set_applied_step(step);
      message.mutable_halted()->set_undo_to_step(step - 1);
      Say(slot.member(), message);
    }
    for (const job::v1::MemberSlot& slot : plan_.slots()) {
      job::v1::SessionRequest message;
      message.mutable_warmed()->set_generation(2);
      message.mutable_warmed()->set_rows(100);
      Say(slot.member(), message);
    }
    Ready(10 * step, 2, step);
  }
  void Progress(int64_t step, double loss, double seconds = 0) {
    time_ += base::FromSeconds(seconds);
    for (const job::v1::MemberSlot& slot : plan_.slots()) {
      job::v1::SessionRequest message;
      message.mutable_progress()->set_generation(1);
      message.mutable_progress()->set_step(step);
      if (slot.stage() == 1) {
        message.mutable_progress()->set_loss_sum(loss * 10);
        message.mutable_progress()->set_loss_samples(10);
      }
      Say(slot.member(), message);
    }
  }
  job::v1::Observation Seen() { return core_.Observe(Now()); }

  base::nanoseconds time_{base::seconds(100)};
  CoordinatorCore core_;
  job::v1::ApplyPlanRequest plan_;
  job::v1::ApplyPlanRequest second_;
  std::map<std::string, std::vector<job::v1::SessionResponse>> sent_;
  std::optional<int> exit_code_;
  std::vector<std::string> logs_;
};

}  // namespace medley::worker
