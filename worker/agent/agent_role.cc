#include "worker/agent/agent_role.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "common/base/host_port.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "worker/agent/ahead_run.h"
#include "worker/agent/program_run.h"

namespace medley::worker {
namespace pb = ::medley::job::v1;
namespace {

constexpr char kMasterKey[] = "program/master";
constexpr char kSavedKey[] = "program/saved";
constexpr base::seconds kMasterWait{120};  // for the agent of unit 0 to say where it is
constexpr base::seconds kGrace{10};        // from SIGTERM to SIGKILL, in a planned stop
constexpr base::seconds kShortGrace{3};    // after a failure: the others wait
constexpr base::seconds kSavedSlack{5};    // beyond the deadline of saving, for the word of unit 0

class PreparedProgram final : public PreparedGeneration {
 public:
  PreparedProgram(const pb::Prepare& order, const AgentContext& context, ProgramPlace place, bool runs)
      : order_(order), context_(context), place_(std::move(place)), runs_(runs) {}
  ~PreparedProgram() override {
    ahead_ = nullptr;
    if (held_) *held_ = false;
  }

  int64_t generation() const override { return order_.generation(); }
  pb::Warmed warmed() const override {
    pb::Warmed warmed;
    warmed.set_generation(order_.generation());
    warmed.set_rows(context_.program->steps * context_.program->samples_per_step);
    warmed.set_lag(1);
    return warmed;
  }
  void Abort() override {}
  const pb::Prepare& order() const { return order_; }
  const ProgramPlace& place() const { return place_; }
  bool runs() const { return runs_; }
  // `held` is set while a program of this unit may be held: there is at most one.
  void StartAhead(std::shared_ptr<std::atomic<bool>> held, base::Clock& clock,
                  std::function<void(const absl::Status&)> failed, const std::stop_token& stop) {
    if (held->exchange(true)) return;
    held_ = std::move(held);
    ahead_ = AheadRun::Start(*context_.program, place_, context_.environment, clock, std::move(failed));
    if (ahead_) ahead_->WaitUntilReady(stop);
  }
  AheadRun* ahead() const { return ahead_.get(); }

 private:
  const pb::Prepare order_;
  const AgentContext& context_;
  const ProgramPlace place_;
  const bool runs_;  // false: it only was a member of the generation before
  std::shared_ptr<std::atomic<bool>> held_;
  std::unique_ptr<AheadRun> ahead_;  // until the program goes on; then what keeps it alive
};

}  // namespace

class AgentRole::Rep {
 public:
  Rep(AgentContext context, Send send) : context_(std::move(context)), send_(std::move(send)) {}
  ~Rep() {
    Abort();
    JoinSave();
    if (run_) run_->Stop(kGrace);
  }

  Held held() const {
    base::MutexLock lock(mutex_);
    return held_;
  }

  absl::StatusOr<std::shared_ptr<PreparedGeneration>> Prepare(const pb::Prepare& order, const std::stop_token& stop) {
    ProgramPlace place;
    place.processes = context_.processes;
    place.run_id = context_.run_id;
    place.restarts = static_cast<int>(std::max<int64_t>(0, order.generation() - 1));
    place.units = order.peers_size();
    int index = -1;
    for (int i = 0; i < order.peers_size(); ++i) {
      if (order.peers(i).slot().member() == context_.session.member) index = i;
    }
    const bool runs = index >= 0;
    if (runs) {
      place.unit = index;
      const auto store = MakeRendezvousStore(context_.session, order.generation());
      if (index == 0) {
        MEDLEY_ASSIGN_OR_RETURN(const int port, FreePort());
        MEDLEY_RETURN_IF_ERROR(store->Put(kMasterKey, base::JoinHostPort(context_.ip, port)));
      }
      MEDLEY_ASSIGN_OR_RETURN(const std::vector<std::string> master, store->Get({kMasterKey}, kMasterWait, stop));
      const size_t colon = master.front().rfind(':');
      if (colon == std::string::npos) return base::Internal("'{}' is no address of rank 0", master.front());
      place.master_address = master.front().substr(0, colon);
      place.master_port = std::atoi(master.front().c_str() + colon + 1);
    }
    auto prepared = std::make_shared<PreparedProgram>(order, context_, std::move(place), runs);
    // A unit on which a program runs would have to hold two.
    if (runs && IsIdle()) {
      const auto failed = [this, generation = order.generation()](const absl::Status& why) { Report(generation, why); };
      prepared->StartAhead(held_ahead_, *context_.clock, failed, stop);
    }
    return prepared;
  }

  absl::StatusOr<pb::Ready> Switch(const pb::Switch& order, std::shared_ptr<PreparedGeneration> next) {
    auto prepared = std::static_pointer_cast<PreparedProgram>(std::move(next));
    if (!prepared || prepared->generation() != order.generation()) {
      return base::FailedPrecondition("generation {} is not prepared", order.generation());
    }
    JoinSave();
    if (run_) SaveAndStop(*prepared);
    if (aborted_) return base::Cancelled("the generation was given up");
    base::MutexLock lock(mutex_);
    prepared_ = std::move(prepared);
    held_ = {order.generation(), order.step()};
    pb::Ready ready;
    ready.set_generation(order.generation());
    ready.set_step(order.step());
    ready.set_state_samples(order.state_samples());
    return ready;
  }

  absl::Status Train(int64_t generation, const pb::StepLease& lease) {
    if (!prepared_ || prepared_->generation() != generation || !prepared_->runs()) {
      return base::FailedPrecondition("generation {} is not in force here", generation);
    }
    const bool follows = prepared_->place().unit != 0;
    if (!run_ && !finished_) {
      base::log::Info("starting the program", {{"generation", std::to_string(generation)},
                                               {"unit", std::to_string(prepared_->place().unit)},
                                               {"units", std::to_string(prepared_->place().units)},
                                               {"from_step", std::to_string(lease.step() - 1)}});
      std::unique_ptr<ProgramRun> run = prepared_->ahead() != nullptr ? prepared_->ahead()->Go() : nullptr;
      if (!run) {
        MEDLEY_ASSIGN_OR_RETURN(
            run, ProgramRun::Start(*context_.program, prepared_->place(), context_.environment, *context_.clock,
                                   [this, generation](const absl::Status& why) { Report(generation, why); }));
      }
      tells_resumed_ = !follows;
      base::MutexLock lock(mutex_);
      run_ = std::move(run);
    }
    if (!finished_) MEDLEY_RETURN_IF_ERROR(WaitFor(lease.step(), follows));
    pb::SessionRequest request;
    pb::Progress& progress = *request.mutable_progress();
    progress.set_generation(generation);
    progress.set_step(lease.step());
    if (const auto loss = follows || finished_ ? std::nullopt : run_->TakeLoss(lease.step())) {
      progress.set_loss_sum(*loss * lease.count());
      progress.set_loss_samples(lease.count());
    }
    if (std::exchange(tells_resumed_, false) && run_) {
      if (const auto from = run_->ResumedFrom(widest_)) progress.set_resumed_from(*from);
    }
    send_(std::move(request));
    base::MutexLock lock(mutex_);
    held_ = {generation, lease.step()};
    if (lease.step() >= context_.program->steps) finished_ = true;
    return absl::OkStatus();
  }

  void Drain(int64_t step) { drained_ = step; }

  absl::Status Checkpoint(const pb::Checkpoint& order, std::function<void(absl::StatusOr<pb::Checkpointed>)> done) {
    JoinSave();
    pb::Checkpointed saved;
    saved.set_step(order.step());
    // A program that has ended has saved what it wants to keep, and one without a signal saves when it wants.
    if (finished_ || !run_ || context_.program->save_signal.empty()) {
      done(saved);
      return absl::OkStatus();
    }
    const bool follows = prepared_->place().unit != 0;
    saver_ =
        std::jthread([this, follows, last = order.step() == drained_, saved, done = std::move(done)](const auto& stop) {
          const auto cancelled = [&] { return stop.stop_requested() || aborted_; };
          const absl::Status status = run_->Save(follows, cancelled);
          if (!status.ok() && cancelled()) return;  // the order was given up
          // The other units follow: they cannot train on without its ranks.
          if (status.ok() && last && !follows) run_->Freeze();
          if (status.ok()) {
            done(saved);
          } else {
            done(base::Annotate(status, "saving the state of the program"));
          }
        });
    return absl::OkStatus();
  }

  void Abort() {
    aborted_ = true;
    base::MutexLock lock(mutex_);
    if (run_) run_->Wake();
  }

  pb::Halted Halt(int64_t generation) {
    JoinSave();
    EndRun(kShortGrace);
    aborted_ = false;
    finished_before_ = finished_before_ || finished_;
    finished_ = false;
    base::MutexLock lock(mutex_);
    pb::Halted halted;
    halted.set_generation(generation);
    // A unit that follows has reported steps that unit 0 has not made yet.
    const bool follows = prepared_ && prepared_->place().unit != 0;
    halted.set_applied_step(follows ? 0 : std::max(held_.step, reached_));
    reached_ = 0;
    halted.set_holds_nothing(true);
    prepared_ = nullptr;
    held_ = {};
    return halted;
  }

 private:
  bool IsIdle() const {
    base::MutexLock lock(mutex_);
    return !run_ && !prepared_;
  }

  // A failure of a unit that follows, which waits for no step; its peers' failures may only be its effects. The same
  // failure is reported again where a step was waited for, and is then ignored.
  void Report(int64_t generation, const absl::Status& why) {
    if (aborted_) return;
    pb::SessionRequest request;
    pb::Fault& fault = *request.mutable_fault();
    fault.set_generation(generation);
    fault.set_step(held().step);
    fault.set_message(base::Message(why));
    send_(std::move(request));
  }

  absl::Status WaitFor(int64_t step, bool follows) {
    absl::Status waited = run_->WaitFor(step, follows, [this] { return aborted_.load(); });
    // It had finished before another member was lost, and found nothing to do when it was started again.
    const bool nothing_left = finished_before_ && absl::IsInvalidArgument(waited) && run_->reached() == 0;
    return nothing_left ? absl::OkStatus() : waited;
  }

  // A program that still saves for a checkpoint is asked once more, and no sooner.
  void JoinSave() {
    saver_.request_stop();
    if (saver_.joinable()) saver_.join();
  }

  void EndRun(base::nanoseconds grace) {
    if (!run_) return;
    run_->Stop(grace);
    reached_ = run_->reached();
    widest_ = std::max(widest_, run_->widest());
    base::MutexLock lock(mutex_);
    run_ = nullptr;
  }

  // For a planned switch. What could not be saved is trained again.
  void SaveAndStop(const PreparedProgram& next) {
    const model::ProgramSpec& program = *context_.program;
    const base::SteadyTime start = context_.clock->Steady();
    const bool follows = prepared_->place().unit != 0;
    const bool saves = !program.save_signal.empty() && !finished_;
    const auto cancelled = [this] { return aborted_.load(); };
    absl::Status saved = saves && !run_->frozen() ? run_->Save(follows, cancelled) : absl::OkStatus();
    // The processes of other units are part of the program until rank 0 has saved.
    if (saves && prepared_->place().units > 1) {
      const auto store = MakeRendezvousStore(context_.session, next.generation());
      if (!follows) store->Put(kSavedKey, saved.ok() ? "yes" : "no").IgnoreError();
      if (follows && saved.ok()) {
        const base::nanoseconds patience = base::FromSeconds(program.save_seconds) + kSavedSlack;
        saved = store->Get({kSavedKey}, patience, {}).status();
      }
    }
    const int64_t reached = run_->reached();
    if (!saved.ok()) base::log::Warn("the program is ended without a new state", {{"why", base::Message(saved)}});
    EndRun(kGrace);
    base::log::Info("the program was ended for the next generation",
                    {{"saved", !saves       ? "not asked to"
                               : saved.ok() ? "yes"
                                            : "no"},
                     {"reached_step", std::to_string(reached)},
                     {"seconds", fmt::format("{:.2f}", base::ToSeconds(context_.clock->Steady() - start))}});
  }

  const AgentContext context_;
  const Send send_;
  const std::shared_ptr<std::atomic<bool>> held_ahead_ = std::make_shared<std::atomic<bool>>(false);
  std::atomic<bool> aborted_ = false;
  std::atomic<bool> finished_ = false;  // the last step was applied
  bool finished_before_ = false;        // in an earlier generation
  bool tells_resumed_ = false;          // the program was started, and the coordinator does not know yet from where
  int64_t drained_ = 0;                 // the step whose checkpoint is the last before another generation
  int64_t reached_ = 0;                 // by the program that was ended last, since the last Halt
  int64_t widest_ = 0;                  // from one report to the next, of all programs
  mutable base::Mutex mutex_;           // for what other threads read: the worker thread alone writes all
  Held held_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<PreparedProgram> prepared_;
  std::unique_ptr<ProgramRun> run_;
  std::jthread saver_;  // last member: it uses the others
};

AgentRole::AgentRole(AgentContext context, Send send)
    : rep_(std::make_unique<Rep>(std::move(context), std::move(send))) {}
AgentRole::~AgentRole() = default;
Held AgentRole::held() const { return rep_->held(); }
absl::StatusOr<std::shared_ptr<PreparedGeneration>> AgentRole::Prepare(const pb::Prepare& order, std::stop_token stop) {
  return rep_->Prepare(order, stop);
}
absl::StatusOr<pb::Ready> AgentRole::Switch(const pb::Switch& order, std::shared_ptr<PreparedGeneration> next) {
  return rep_->Switch(order, std::move(next));
}
absl::Status AgentRole::Train(int64_t generation, const pb::StepLease& lease, const pb::StepLease*) {
  return rep_->Train(generation, lease);
}
absl::Status AgentRole::Drain(const pb::Drain& order) {
  rep_->Drain(order.step());
  return absl::OkStatus();
}
absl::Status AgentRole::Checkpoint(const pb::Checkpoint& order,
                                   std::function<void(absl::StatusOr<pb::Checkpointed>)> done) {
  return rep_->Checkpoint(order, std::move(done));
}
absl::StatusOr<pb::Evaluated> AgentRole::Evaluate(const pb::Evaluate&) { return pb::Evaluated(); }
absl::StatusOr<double> AgentRole::Probe(const pb::Probe&) {
  return base::FailedPrecondition("a program cannot be probed");
}
void AgentRole::Abort() { rep_->Abort(); }
pb::Halted AgentRole::Halt(int64_t generation) { return rep_->Halt(generation); }

}  // namespace medley::worker
