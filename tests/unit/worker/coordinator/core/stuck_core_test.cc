// Whatever interrupts a job again and again at one step, the job fails after a bounded number of attempts and says why.
#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "common/base/status.h"
#include "tests/unit/worker/coordinator/core/sim_world.h"
#include "worker/coordinator/core/core.h"

namespace medley::worker {
namespace {

using testing::HasSubstr;

enum class Failure {
  kBrokenSession,         // the victim reconnects
  kLost,                  // it dies, and its replacement connects
  kExchange,              // it reports a broken exchange
  kFault,                 // it reports another fault
  kSilence,               // it makes no progress
  kOutOfOrder,            // it reports a step that does not follow
  kNeverHalts,            // a broken exchange, after which it does not halt
  kBrokenWhilePreparing,  // likewise, and it reconnects whenever a generation is prepared
  kLostWhilePreparing,
  kFaultWhilePreparing,
  kNeverWarm,
  kNeverReady,
  kCoordinatorDies
};

constexpr struct {
  Failure failure;
  const char* name;
  const char* cause;  // part of the job's message
} kFailures[] = {
    {Failure::kBrokenSession, "BrokenSession", "the session of job-0-a-0 was interrupted"},
    {Failure::kLost, "Lost", "job-0-a-0 "},
    {Failure::kExchange, "Exchange", "the exchange of job-0-a-0 with other members broke"},
    {Failure::kFault, "Fault", "job-0-a-0: no memory"},
    {Failure::kSilence, "Silence", "no step was committed for 120 s"},
    {Failure::kOutOfOrder, "OutOfOrder", "out of order"},
    {Failure::kNeverHalts, "NeverHalts", "job-0-a-0 did not halt in time"},
    {Failure::kBrokenWhilePreparing, "BrokenWhilePreparing", "the session of job-0-a-0 was interrupted"},
    {Failure::kLostWhilePreparing, "LostWhilePreparing", "job-0-a-0 was lost"},
    {Failure::kFaultWhilePreparing, "FaultWhilePreparing", "job-0-a-0: no memory"},
    {Failure::kNeverWarm, "NeverWarm", "members that were not warm in time: job-0-a-0"},
    {Failure::kNeverReady, "NeverReady", "members that were not ready in time: job-0-a-0"},
    {Failure::kCoordinatorDies, "CoordinatorDies", "the coordinator restarted"},
};

// Members that carry out every order at once, but for a victim, which fails from one step on.
class StuckJob {
 public:
  // `step`: 1 to 20 for a step; 21: while the finished job is evaluated.
  StuckJob(Failure failure, int64_t step, int evaluate_every) : failure_(failure), step_(step) {
    options_.batch_size = 10;
    options_.epochs = 2;
    options_.evaluation.every_steps = evaluate_every;
    core_.emplace(options_, Now(), std::nullopt);
    plan_ = sim::MakePlan(1, 1, 1, 1, "a");
    EXPECT_TRUE(core_->ApplyPlan(plan_, Now()).ok());
    for (const job::v1::MemberSlot& slot : plan_.slots()) Hello(slot.member());
  }

  void Run() {
    for (int seconds = 0; seconds < 4 * 3600 && !core_->over(); ++seconds) {
      while (Carry()) {
      }
      time_ += base::seconds(1);
      core_->Tick(Now());
    }
  }

  const CoordinatorCore& core() const { return *core_; }
  job::v1::Observation Seen() const { return core_->Observe(Now()); }
  int64_t generations() const { return generations_; }

 private:
  struct Process {
    int instance = 0;
    int64_t held = 0;  // the generation of its state
    int64_t applied = 0;
  };

  Instant Now() const { return {base::SteadyTime(time_), base::WallTime(base::seconds(1'700'000'000))}; }
  static constexpr char kVictim[] = "job-0-a-0";
  std::string Instance(const std::string& member) { return std::to_string(members_[member].instance); }

  void Say(const std::string& member, const std::function<void(job::v1::SessionRequest&)>& fill) {
    job::v1::SessionRequest message;
    fill(message);
    core_->OnMessage(member, Instance(member), message, Now());
  }
  void Hello(const std::string& member) {
    for (const job::v1::MemberSlot& slot : plan_.slots()) {
      if (slot.member() != member) continue;
      Say(member, [&](job::v1::SessionRequest& message) {
        job::v1::Hello& hello = *message.mutable_hello();
        hello.set_member(member);
        hello.set_role(slot.role());
        hello.set_pool(slot.pool());
        hello.set_instance(Instance(member));
        hello.set_held_generation(members_[member].held);
      });
    }
  }
  void Die(const std::string& member) {
    core_->OnLost(member, Instance(member), Now());
    members_[member] = {.instance = members_[member].instance + 1};
    Hello(member);
  }
  void Fault(int64_t generation, int64_t step, job::v1::FaultKind kind) {
    Say(kVictim, [&](job::v1::SessionRequest& message) {
      message.mutable_fault()->set_generation(generation);
      message.mutable_fault()->set_step(step);
      message.mutable_fault()->set_kind(kind);
      message.mutable_fault()->set_message("no memory");
    });
  }
  // All members: a coordinator that starts again knows none of them.
  void RestartCoordinator() {
    core_.emplace(options_, Now(), journal_);
    for (const job::v1::MemberSlot& slot : plan_.slots()) Hello(slot.member());
  }

  // Returns false when no command was left.
  bool Carry() {
    std::vector<Command> commands = core_->TakeCommands();
    for (const Command& command : commands) {
      if (const auto* journal = std::get_if<JournalCommand>(&command)) journal_ = journal->state;
    }
    // The victim comes last, so that all others have completed the steps before the one that it does not complete.
    std::stable_partition(commands.begin(), commands.end(), [](const Command& command) {
      const auto* send = std::get_if<SendCommand>(&command);
      return send != nullptr && send->member != kVictim;
    });
    for (const Command& command : commands) {
      if (const auto* drop = std::get_if<DropCommand>(&command)) Die(drop->member);
      const auto* send = std::get_if<SendCommand>(&command);
      if (send == nullptr || core_->over() || send->instance != Instance(send->member)) continue;
      if (!Deliver(send->member, send->message)) return true;  // the rest is lost with the coordinator
    }
    return !commands.empty();
  }

  bool Deliver(const std::string& member, const job::v1::SessionResponse& message) {
    const bool victim = member == kVictim;
    Process& process = members_[member];
    if (message.has_prepare()) {
      const int64_t generation = message.prepare().generation();
      if (victim) ++generations_;
      if (victim && began_) {
        if (failure_ == Failure::kNeverWarm) return true;
        if (failure_ == Failure::kBrokenWhilePreparing) return Hello(member), true;
        if (failure_ == Failure::kLostWhilePreparing) return Die(member), true;
        if (failure_ == Failure::kFaultWhilePreparing) {
          return Fault(generation, 0, job::v1::FAULT_KIND_UNSPECIFIED), true;
        }
      }
      Say(member, [&](job::v1::SessionRequest& request) {
        request.mutable_warmed()->set_generation(generation);
        request.mutable_warmed()->set_rows(100);
      });
    }
    if (message.has_switch_() && !(victim && began_ && failure_ == Failure::kNeverReady)) {
      process.held = message.switch_().generation();
      process.applied = message.switch_().step();
      Say(member, [&](job::v1::SessionRequest& request) {
        request.mutable_ready()->set_generation(process.held);
        request.mutable_ready()->set_step(process.applied);
        request.mutable_ready()->set_state_samples(message.switch_().state_samples());
      });
    }
    if (message.has_halt() && !(victim && failure_ == Failure::kNeverHalts)) {
      Say(member, [&](job::v1::SessionRequest& request) {
        request.mutable_halted()->set_generation(message.halt().generation());
        request.mutable_halted()->set_applied_step(process.applied);
        request.mutable_halted()->set_undo_to_step(std::max<int64_t>(0, process.applied - 1));
      });
    }
    if (message.has_lease()) {
      for (const job::v1::StepLease& step : message.lease().steps()) {
        if (step.step() >= step_ && victim) return Suffer(message.lease().generation(), step.step());
        if (step.step() >= step_) break;  // no step completes without the victim
        if (step.step() != process.applied + 1) continue;
        ++process.applied;
        Say(member, [&](job::v1::SessionRequest& request) {
          request.mutable_progress()->set_generation(message.lease().generation());
          request.mutable_progress()->set_step(step.step());
        });
      }
    }
    if (message.has_evaluate()) {
      if (victim && (step_ == 21 || began_)) return Suffer(message.evaluate().generation(), process.applied);
      Say(member, [&](job::v1::SessionRequest& request) { request.mutable_evaluated(); });
    }
    return true;
  }

  // Returns false when the coordinator was started again.
  bool Suffer(int64_t generation, int64_t step) {
    began_ = true;
    switch (failure_) {
      case Failure::kBrokenSession:
      case Failure::kBrokenWhilePreparing:
        Hello(kVictim);
        break;
      case Failure::kLost:
      case Failure::kLostWhilePreparing:
        Die(kVictim);
        break;
      case Failure::kExchange:
      case Failure::kNeverHalts:
      case Failure::kNeverWarm:
      case Failure::kNeverReady:
        Fault(generation, step, job::v1::FAULT_KIND_EXCHANGE);
        break;
      case Failure::kFault:
      case Failure::kFaultWhilePreparing:
        Fault(generation, step, job::v1::FAULT_KIND_UNSPECIFIED);
        break;
      case Failure::kSilence:
        break;
      case Failure::kOutOfOrder:
        Say(kVictim, [&](job::v1::SessionRequest& request) {
          request.mutable_progress()->set_generation(generation);
          request.mutable_progress()->set_step(step + 3);
        });
        break;
      case Failure::kCoordinatorDies:
        RestartCoordinator();
        return false;
    }
    return true;
  }

  const Failure failure_;
  const int64_t step_;
  CoreOptions options_;
  base::nanoseconds time_{base::seconds(100)};
  std::optional<CoordinatorCore> core_;
  std::optional<job::v1::CoordinatorState> journal_;
  job::v1::ApplyPlanRequest plan_;
  std::map<std::string, Process> members_;
  bool began_ = false;
  int64_t generations_ = 0;
};

TEST(StuckJobTest, EveryFailureAtEveryStepEndsTheJobWithItsCause) {
  for (const auto& failure : kFailures) {
    for (int64_t step = 1; step <= 21; ++step) {
      SCOPED_TRACE(testing::Message() << failure.name << " at step " << step);
      const bool ends_training = step == 21;
      // An evaluation has a deadline, and its progress no order.
      if (ends_training && failure.failure == Failure::kOutOfOrder) continue;
      StuckJob job(failure.failure, step, 0);
      job.Run();
      ASSERT_TRUE(job.core().over());
      const job::v1::Observation seen = job.Seen();
      EXPECT_EQ(seen.phase(), job::v1::JOB_PHASE_FAILED);
      EXPECT_TRUE(seen.retryable());
      const bool evaluates = ends_training && failure.failure == Failure::kSilence;
      EXPECT_THAT(seen.message(), HasSubstr(evaluates ? "the evaluation made no progress" : failure.cause));
      EXPECT_THAT(seen.message(), HasSubstr("interruptions without progress beyond step " + std::to_string(step - 1)));
      EXPECT_LE(job.generations(), 105);
    }
  }
}

TEST(StuckJobTest, AJobWithoutFailuresCompletes) {
  StuckJob job(Failure::kFault, 1000, 5);
  job.Run();
  EXPECT_EQ(job.Seen().phase(), job::v1::JOB_PHASE_COMPLETE);
  EXPECT_EQ(job.generations(), 1);
}

TEST(RecoveryBudgetTest, FaultsWeighMoreThanLosses) {
  RecoveryBudget faults(5);
  for (int i = 0; i < 5; ++i) faults.Interrupted(RecoveryBudget::Weight::kFault);
  EXPECT_FALSE(faults.spent());
  faults.Interrupted(RecoveryBudget::Weight::kFault);
  EXPECT_TRUE(faults.spent());
  EXPECT_EQ(faults.interruptions(), 6);
  RecoveryBudget losses(5);
  for (int i = 0; i < 12; ++i) losses.Interrupted(RecoveryBudget::Weight::kLoss);
  EXPECT_FALSE(losses.spent());
  losses.Interrupted(RecoveryBudget::Weight::kLoss);
  EXPECT_TRUE(losses.spent());
}

TEST(RecoveryBudgetTest, StepsThatWereCommittedBeforeAreNotProgress) {
  RecoveryBudget budget(5);
  budget.Committed(10);
  for (int i = 0; i < 100; ++i) {
    budget.Interrupted(RecoveryBudget::Weight::kLoss);
    budget.Committed(10);
    ASSERT_FALSE(budget.spent()) << i;
  }
  budget.Interrupted(RecoveryBudget::Weight::kLoss);
  EXPECT_TRUE(budget.spent());
  EXPECT_EQ(budget.interruptions(), 101);
  EXPECT_GT(budget.Pause(base::seconds(1)), base::seconds(1));
  budget.Committed(11);
  EXPECT_FALSE(budget.spent());
  EXPECT_EQ(budget.Pause(base::seconds(1)), base::nanoseconds(0));
}

TEST(RecoveryBudgetTest, APlanDoesNotMakeItLast) {
  RecoveryBudget budget(5);
  int plans = 0;
  for (; !budget.spent() && plans < 1000; ++plans) {
    budget.NewPlan();
    budget.Interrupted(RecoveryBudget::Weight::kFault);
  }
  EXPECT_EQ(plans, 41);
}

TEST(RecoveryBudgetTest, SurvivesTheCoordinator) {
  RecoveryBudget budget(5);
  budget.Committed(7);
  for (int i = 0; i < 6; ++i) budget.Interrupted(RecoveryBudget::Weight::kFault);
  RecoveryBudget restored(5);
  restored.Restore(budget.ToRecord());
  EXPECT_TRUE(restored.spent());
  EXPECT_EQ(restored.furthest_step(), 7);
  restored.NewAttempt();
  EXPECT_FALSE(restored.spent());
  EXPECT_EQ(restored.furthest_step(), 7);
}

TEST(RecoveryBudgetTest, PausesGrowToHalfAMinute) {
  RecoveryBudget budget(1000);
  base::nanoseconds last(0);
  for (int i = 0; i < 30; ++i) {
    budget.Interrupted(RecoveryBudget::Weight::kLoss);
    const base::nanoseconds pause = budget.Pause(base::seconds(1));
    EXPECT_GE(pause, last);
    last = pause;
  }
  EXPECT_EQ(last, base::seconds(30));
}

}  // namespace
}  // namespace medley::worker
