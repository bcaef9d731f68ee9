#include "worker/coordinator/core/core.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/status.h"
#include "common/model/convert.h"
#include "common/model/executable.h"
#include "common/model/leader_term.h"
#include "common/program/compile.h"

namespace medley::worker {
namespace {

constexpr size_t kMaxMembers = 4096;
constexpr base::nanoseconds kJournalInterval = base::seconds(10);

absl::Status HandedOverError() { return base::Unavailable("another coordinator leads the job now"); }

}  // namespace

CoordinatorCore::CoordinatorCore(CoreOptions options, Instant now,
                                 const std::optional<job::v1::CoordinatorState>& journal)
    : options_(std::move(options)), curve_(options_.evaluation), slow_(options_.slow_for), standbys_(options_.standby) {
  waiting_since_ = checkpoint_at_ = committed_at_ = journaled_at_ = now.steady;
  if (journal) Restore(*journal, now);
}

void CoordinatorCore::Restore(const job::v1::CoordinatorState& journal, Instant now) {
  last_generation_ = journal.last_generation();
  leader_term_ = journal.leader_term();
  // The operator sends its plan again, so one that cannot be carried out is forgotten.
  if (journal.has_desired() && CheckPlan(journal.desired()).ok()) desired_ = journal.desired();
  if (journal.has_first_plan()) first_plan_ = journal.first_plan();
  from_generation_ = journal.from_generation();
  last_checkpoint_ = journal.last_checkpoint_step();
  restarts_ = journal.restarts();
  bad_rows_ = journal.bad_rows();
  budget_.Restore(journal.recovery());
  if (journal.outcome() == job::v1::JOB_PHASE_FAILED) budget_.NewAttempt();
  train_digest_ = journal.train_digest();
  test_digest_ = journal.test_digest();
  validation_digest_ = journal.validation_digest();
  last_folder_ = journal.last_checkpoint_folder();
  if (journal.has_best() && !options_.selection.metric.empty()) best_ = journal.best();
  if (journal.has_test()) tested_ = journal.test();
  if (journal.has_exported()) exported_ = journal.exported();
  if (journal.has_checkpoint_failure()) checkpoint_failure_ = journal.checkpoint_failure();
  checkpoint_failures_ = journal.checkpoint_failures();
  switches_.assign(journal.switches().begin(), journal.switches().end());
  metrics_.insert(journal.metrics().begin(), journal.metrics().end());
  curve_.Restore({journal.evaluations().begin(), journal.evaluations().end()});
  cost_.Restore(journal.usd_spent(), journal.usd_first_plan(), journal.first_plan_throughput(), journal.paid_samples());
  if (first_plan_) cost_.SetFirstPlan(first_plan_->plan());
  if (desired_) cost_.SetPrices(desired_->usd_per_unit_hour());
  if (journal.ledger().rows() > 0) {
    if (auto ledger = Ledger::FromRecord(journal.ledger()); ledger.ok()) ledger_ = *ledger;
  }
  if (journal.outcome() == job::v1::JOB_PHASE_COMPLETE ||
      (journal.outcome() == job::v1::JOB_PHASE_FAILED && !journal.retryable())) {
    outcome_ = journal.outcome();
    message_ = journal.message();
    retryable_ = journal.retryable();
    commands_.push_back(FinishCommand{outcome_ == job::v1::JOB_PHASE_COMPLETE ? 0 : 2});
    return;
  }
  if (journal.active().generation() == 0 || !ledger_ || !CheckPlan(journal.active_plan()).ok()) return;
  GenerationInfo& active = active_.emplace();
  active.generation = journal.active().generation();
  active.plan = journal.active().plan();
  active.request = journal.active_plan();
  active.peers.assign(journal.active().peers().begin(), journal.active().peers().end());
  active.step = journal.active().start_step();
  active.lag = std::max(1, journal.active().lag());
  active.averages = journal.active().averages();
  for (const job::v1::Peer& peer : journal.active().peers()) {
    GenerationMember& member = active.members[peer.slot().member()];
    member.peer = peer;
    member.awaited = true;
  }
  RestoreStandbys(journal, now);
  mode_ = Mode::kHalting;
  halt_deadline_ = now.steady + options_.reconnect_wait;
  last_interruption_ = {job::v1::SWITCH_CAUSE_COORDINATOR_RESTARTED, "the coordinator restarted", ""};
  if (journal.handed_over().at_boundary()) {
    adopting_ = journal.handed_over();
    adopt_deadline_ = now.steady + options_.adopt_wait;
    if (journal.handed_over().term() > options_.term && options_.term > 0) {
      // This one handed the job over itself and was started again before the other one claimed the job. The members may
      // be with that one. They give up before this wait ends, so their state must not be taken for lost earlier.
      halt_deadline_ = adopt_deadline_ = now.steady + options_.member_wait;
    }
  } else {
    ++restarts_;
    budget_.Interrupted(RecoveryBudget::Weight::kLoss);
  }
  Log(false, fmt::format("the coordinator {}: waiting for {} members of generation {} to reconnect",
                         adopting_ ? "takes over" : "restarted", active.members.size(), active.generation));
}

absl::Status CoordinatorCore::AcceptTerm(int64_t leader_term, Instant now) {
  if (leader_term < leader_term_) return model::StaleTerm(leader_term, leader_term_);
  if (leader_term == leader_term_) return absl::OkStatus();
  Log(false,
      fmt::format("requests now come from the leader of term {}, before from term {}", leader_term, leader_term_));
  leader_term_ = leader_term;
  Journal(now);
  return absl::OkStatus();
}

absl::Status CoordinatorCore::CheckPlan(const job::v1::ApplyPlanRequest& request) const {
  MEDLEY_RETURN_IF_ERROR(ValidateApply(request));
  std::vector<model::OperationParts> operations;
  for (const model::Layer& layer : options_.model.layers) {
    operations.push_back({.tables = layer.sparse, .dense = !layer.sparse && layer.weight_bytes > 0});
  }
  MEDLEY_RETURN_IF_ERROR(model::CheckExecutable(request.plan(), operations));
  if (operations.empty()) return absl::OkStatus();
  // What members would refuse later, after the job has prepared for it.
  MEDLEY_ASSIGN_OR_RETURN(const model::ExecutionPlan plan, model::FromProto(request.plan()));
  return base::Annotate(program::Compile(plan, options_.model).status(), "plan");
}

absl::StatusOr<int64_t> CoordinatorCore::ApplyPlan(const job::v1::ApplyPlanRequest& request, Instant now) {
  MEDLEY_RETURN_IF_ERROR(CheckPlan(request));
  if (const std::string& uid = request.plan().job_uid(); !uid.empty() && uid != options_.job_uid) {
    return base::InvalidArgument("plan.jobUid: this coordinator leads the job with uid '{}', not '{}'",
                                 options_.job_uid, uid);
  }
  if (handed_over_) return HandedOverError();
  MEDLEY_RETURN_IF_ERROR(AcceptTerm(request.leader_term(), now));
  if (over()) return base::FailedPrecondition("the job is over: {}", message_);
  Hold(now);
  if (desired_ && request.plan().generation() < desired_->plan().generation()) {
    return base::FailedPrecondition("plan {} is older than plan {}", request.plan().generation(),
                                    desired_->plan().generation());
  }
  if (refused_ && request.plan().generation() == refused_->generation()) {
    return base::FailedPrecondition("plan {} was given up, because {} cannot run it: {}", refused_->generation(),
                                    refused_->member(), refused_->message());
  }
  const bool tables =
      std::ranges::any_of(options_.model.layers, [](const model::Layer& layer) { return layer.sparse; });
  if (tables && desired_ && desired_->plan().has_servers() != request.plan().has_servers()) {
    return base::Unimplemented(
        "plan.servers: a job whose embedding tables are {} cannot train with a plan whose tables are {}: rows do not "
        "move between trainers and parameter servers",
        desired_->plan().has_servers() ? "on parameter servers" : "at a trainer",
        request.plan().has_servers() ? "on parameter servers" : "at a trainer");
  }
  cost_.SetPrices(request.usd_per_unit_hour());
  const auto generation_of = [&] {
    const int64_t plan = desired_->plan().generation();
    if (active_ && active_->request.plan().generation() == plan) return active_->generation;
    if (next_ && next_->request.plan().generation() == plan) return next_->generation;
    return std::max(last_generation_ + 1, plan);
  };
  if (desired_ && request.plan().generation() == desired_->plan().generation()) {
    *desired_->mutable_usd_per_unit_hour() = request.usd_per_unit_hour();
    return generation_of();
  }
  desired_ = request;
  refused_.reset();
  if (!first_plan_) {
    first_plan_ = request;
    cost_.SetFirstPlan(request.plan());
  }
  budget_.NewPlan();
  waiting_since_ = retry_at_ = now.steady;
  if (next_ && !next_->switching && mode_ != Mode::kHalted) {
    AbandonNext({job::v1::SWITCH_CAUSE_PLAN, "a newer plan arrived", ""}, std::nullopt, now);
  }
  Journal(now);
  Advance(now);
  return generation_of();
}

absl::Status CoordinatorCore::Drain(const std::vector<std::string>& members, int64_t leader_term, Instant now) {
  if (handed_over_) return HandedOverError();
  MEDLEY_RETURN_IF_ERROR(AcceptTerm(leader_term, now));
  PlanOut(members, now);
  return absl::OkStatus();
}

// The operator (Drain) or the members themselves (Leaving) announce that these members will leave.
void CoordinatorCore::PlanOut(const std::vector<std::string>& members, Instant now) {
  Hold(now);
  for (const std::string& name : members) {
    const auto found = members_.find(name);
    if (found == members_.end() || found->second.leaving) continue;
    found->second.leaving = true;
    checkpoint_wanted_ = true;  // ConsiderChange clears it when a generation without the member can start
    if (next_ && !next_->switching && mode_ != Mode::kHalted && next_->members.contains(name)) {
      AbandonNext({job::v1::SWITCH_CAUSE_MEMBER_LEFT, name + " will leave", name}, RecoveryBudget::Weight::kLoss, now);
    }
    const bool has_part = (active_ && active_->members.contains(name)) || (next_ && next_->members.contains(name));
    if (!has_part && standbys_.Find(name) != nullptr) ReleaseStandby(name, "it leaves, and only stood by", now);
  }
  Advance(now);
}

absl::Status CoordinatorCore::Suspend(const std::string& reason, int64_t leader_term, Instant now) {
  if (handed_over_) return HandedOverError();
  MEDLEY_RETURN_IF_ERROR(AcceptTerm(leader_term, now));
  Hold(now);
  if (over() || suspending_) return absl::OkStatus();
  suspending_ = true;
  successor_.reset();
  suspend_deadline_ = now.steady + options_.checkpoint_timeout;
  message_ = reason;
  if (next_ && !next_->switching && mode_ == Mode::kTraining) {
    AbandonNext({.text = "the job is suspended"}, std::nullopt, now);
  }
  Advance(now);
  return absl::OkStatus();
}

void CoordinatorCore::OnMessage(const std::string& member, const std::string& instance,
                                const job::v1::SessionRequest& message, Instant now) {
  Hold(now);
  if (over() || handed_over_) return;
  if (message.has_hello()) {
    OnHello(message.hello(), now);
  } else {
    const auto found = members_.find(member);
    if (found == members_.end() || found->second.hello.instance() != instance) return;
    if (message.has_warmed()) OnWarmed(member, message.warmed(), now);
    if (message.has_ready()) OnReady(member, message.ready(), now);
    if (message.has_progress()) OnProgress(member, message.progress(), now);
    if (message.has_fault()) OnFault(member, message.fault(), now);
    if (message.has_halted()) OnHalted(member, message.halted(), now);
    if (message.has_checkpointed()) OnCheckpointed(member, message.checkpointed(), now);
    if (message.has_evaluating()) OnEvaluating(member, message.evaluating(), now);
    if (message.has_evaluated()) OnEvaluated(member, message.evaluated(), now);
    if (message.has_probed()) OnProbed(member, message.probed(), now);
    if (message.has_leaving()) return PlanOut({member}, now);
  }
  Advance(now);
}

void CoordinatorCore::OnHello(const job::v1::Hello& hello, Instant now) {
  const std::string& name = hello.member();
  if (name.empty() || (members_.size() >= kMaxMembers && !members_.contains(name))) {
    return Log(
        true,
        fmt::format("refused the session of member '{}': the name is empty or the job has too many members", name));
  }
  const auto before = members_.find(name);
  const bool again = before != members_.end() && before->second.hello.instance() == hello.instance();
  if (before != members_.end() && !again) {
    const std::string old_instance = before->second.hello.instance();
    OnLost(name, old_instance, now);
  }
  if (over()) return;
  if (!standbys_.Has(name, hello.instance())) standbys_.Remove(name, now.steady);
  standbys_.OnSession(name);
  ConnectedMember& member = members_[name];
  member.hello = hello;
  if (!again) member.since = now.steady;
  const Cause broken{job::v1::SWITCH_CAUSE_SESSION_BROKEN, fmt::format("the session of {} was interrupted", name),
                     name};
  const auto holder = active_ ? active_->members.find(name) : std::map<std::string, GenerationMember>::iterator();
  if (active_ && holder != active_->members.end()) {
    const bool same = holder->second.peer.instance() == hello.instance();
    if (!same || hello.held_generation() < active_->generation) {
      active_->members.erase(holder);
      return LoseHolder({job::v1::SWITCH_CAUSE_MEMBER_LOST, name + " came back without its state", name}, now);
    }
    holder->second.awaited = false;
    holder->second.peer.set_address(hello.address());
    if (adopting_) return OnReturn(now);
    if (mode_ == Mode::kHalting) return HaltMember(holder->second);
    return BeginHalt(broken, now);
  }
  if (next_ && next_->members.contains(name)) AbandonNext(broken, RecoveryBudget::Weight::kLoss, now);
}

void CoordinatorCore::OnLost(const std::string& member, const std::string& instance, Instant now) {
  Hold(now);
  const auto found = members_.find(member);
  if (found == members_.end() || found->second.hello.instance() != instance) return;
  // The process may have ended because of the fault.
  const bool faulted = active_ && !found->second.fault.empty() && found->second.fault_generation == active_->generation;
  const std::string fault = faulted ? ": " + found->second.fault : "";
  members_.erase(found);
  if (over() || handed_over_) return;
  standbys_.Remove(member, now.steady);
  const auto of = [&](const std::optional<GenerationInfo>& generation) {
    if (!generation) return false;
    const auto at = generation->members.find(member);
    return at != generation->members.end() && at->second.peer.instance() == instance;
  };
  const Cause why{job::v1::SWITCH_CAUSE_MEMBER_LOST, member + " was lost" + fault, member};
  if (of(active_)) {
    active_->members.erase(member);
    LoseHolder(why, now);
  } else if (of(next_)) {
    AbandonNext(why, RecoveryBudget::Weight::kLoss, now);
  }
  Advance(now);
}

// Reacts after a holder of the state was removed from active_->members.
void CoordinatorCore::LoseHolder(const Cause& why, Instant now) {
  if (mode_ == Mode::kTraining) return BeginHalt(why, now);
  StopAdopting(why);
  Blame(why);
  if (mode_ == Mode::kHalted && next_) AbandonNext(why, RecoveryBudget::Weight::kLoss, now);
  if (mode_ == Mode::kHalted && !StateIsWhole()) LoseState(why, now);
}

void CoordinatorCore::OnFault(const std::string& member, const job::v1::Fault& fault, Instant now) {
  if (fault.kind() == job::v1::FAULT_KIND_CHECKPOINT) return OnCheckpointFault(member, fault, now);
  if (fault.kind() == job::v1::FAULT_KIND_RESTORE) return OnRestoreFault(member, fault, now);
  if (fault.permanent()) return OnPermanentFault(member, fault, now);
  Log(true,
      fmt::format("{} at step {} of generation {}: {}", member, fault.step(), fault.generation(), fault.message()));
  // The message of a transport error says which call failed, not what it means for the job, so users get another one.
  const bool exchange = fault.kind() == job::v1::FAULT_KIND_EXCHANGE;
  if (const auto found = members_.find(member); found != members_.end() && !exchange) {
    found->second.fault = fault.message();
    found->second.fault_generation = fault.generation();
  }
  const Cause why{exchange ? job::v1::SWITCH_CAUSE_EXCHANGE_BROKEN : job::v1::SWITCH_CAUSE_MEMBER_FAULT,
                  exchange ? fmt::format("the exchange of {} with other members broke at step {}", member, fault.step())
                           : fmt::format("{}: {}", member, fault.message()),
                  member};
  if (next_ && fault.generation() == next_->generation) {
    return AbandonNext(why, RecoveryBudget::Weight::kFault, now);
  }
  if (mode_ == Mode::kTraining && fault.generation() == active_->generation) BeginHalt(why, now);
}

void CoordinatorCore::OnPermanentFault(const std::string& member, const job::v1::Fault& fault, Instant now) {
  if (next_ && fault.generation() == next_->generation) return RefuseNext(member, fault.message(), now);
  const bool in_force = active_ && fault.generation() == active_->generation;
  if (!in_force) {  // it was given up meanwhile
    return Log(true,
               fmt::format("{} of generation {}, which was given up: {}", member, fault.generation(), fault.message()));
  }
  Fail(fmt::format("{}: {}", member, fault.message()), false, now);
}

void CoordinatorCore::Tick(Instant now) {
  Hold(now);
  if (over() || handed_over_) return;
  CheckDeadlines(now);
  if (over()) return;
  Advance(now);
  if (!over() && !handed_over_) SendProbes(now);
  if (!over() && ledger_ && now.steady - journaled_at_ >= kJournalInterval) Journal(now);
}

void CoordinatorCore::Advance(Instant now) {
  // Each round changes the mode or next_, or is the last one. The bound guards against an endless loop.
  for (int round = 0; round < 8 && !over() && !handed_over_; ++round) {
    if (successor_ && AdvanceHandOver(now)) return;
    const auto before = std::tuple(mode_, last_generation_, next_.has_value(), active_generation());
    if (mode_ == Mode::kHalting) ResolveHalt(now);
    if (!over() && next_) AdvanceNext(now);
    if (!over() && mode_ == Mode::kIdle) AdvanceIdle(now);
    if (!over() && mode_ == Mode::kHalted) AdvanceHalted(now);
    if (!over() && mode_ == Mode::kTraining) AdvanceTraining(now);
    if (before == std::tuple(mode_, last_generation_, next_.has_value(), active_generation())) return;
  }
}

void CoordinatorCore::Send(const job::v1::Peer& to, job::v1::SessionResponse message) {
  commands_.push_back(SendCommand{to.slot().member(), to.instance(), std::move(message)});
}

const ConnectedMember* CoordinatorCore::Connected(const job::v1::Peer& peer) const {
  const auto found = members_.find(peer.slot().member());
  if (found == members_.end() || found->second.hello.instance() != peer.instance()) return nullptr;
  return &found->second;
}

}  // namespace medley::worker
