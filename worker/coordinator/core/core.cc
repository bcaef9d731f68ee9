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
    : state_(std::move(options)) {
  state_.recovery.waiting_since = state_.checkpoints.started_at = state_.training.committed_at = journaled_at_ =
      now.steady;
  if (journal) Restore(*journal, now);
}

void CoordinatorCore::Restore(const job::v1::CoordinatorState& journal, Instant now) {
  state_.generations.last = journal.last_generation();
  state_.plans.leader_term = journal.leader_term();
  // The operator sends its plan again, so one that cannot be carried out is forgotten.
  if (journal.has_desired() && CheckPlan(journal.desired()).ok()) state_.plans.desired = journal.desired();
  if (journal.has_first_plan()) state_.plans.first = journal.first_plan();
  state_.generations.from = journal.from_generation();
  state_.checkpoints.last_step = journal.last_checkpoint_step();
  state_.recovery.restarts = journal.restarts();
  state_.data.bad_rows = journal.bad_rows();
  state_.recovery.budget.Restore(journal.recovery());
  if (journal.outcome() == job::v1::JOB_PHASE_FAILED) state_.recovery.budget.NewAttempt();
  state_.data.train_digest = journal.train_digest();
  state_.data.test_digest = journal.test_digest();
  state_.data.validation_digest = journal.validation_digest();
  state_.checkpoints.last_folder = journal.last_checkpoint_folder();
  if (journal.has_best() && !state_.options.selection.metric.empty()) state_.best.kept = journal.best();
  if (journal.has_test()) state_.evaluation.tested = journal.test();
  if (journal.has_exported()) state_.best.exported = journal.exported();
  if (journal.has_checkpoint_failure()) state_.checkpoints.failure = journal.checkpoint_failure();
  state_.checkpoints.failures = journal.checkpoint_failures();
  state_.generations.switches.assign(journal.switches().begin(), journal.switches().end());
  state_.evaluation.metrics.insert(journal.metrics().begin(), journal.metrics().end());
  state_.evaluation.curve.Restore({journal.evaluations().begin(), journal.evaluations().end()});
  state_.meters.cost.Restore(journal.usd_spent(), journal.usd_first_plan(), journal.first_plan_throughput(),
                             journal.paid_samples());
  if (state_.plans.first) state_.meters.cost.SetFirstPlan(state_.plans.first->plan());
  if (state_.plans.desired) state_.meters.cost.SetPrices(state_.plans.desired->usd_per_unit_hour());
  if (journal.ledger().rows() > 0) {
    if (auto ledger = Ledger::FromRecord(journal.ledger()); ledger.ok()) state_.training.ledger = *ledger;
  }
  if (journal.outcome() == job::v1::JOB_PHASE_COMPLETE ||
      (journal.outcome() == job::v1::JOB_PHASE_FAILED && !journal.retryable())) {
    state_.ending.outcome = journal.outcome();
    state_.ending.message = journal.message();
    state_.ending.retryable = journal.retryable();
    commands_.push_back(FinishCommand{state_.ending.outcome == job::v1::JOB_PHASE_COMPLETE ? 0 : 2});
    return;
  }
  if (journal.active().generation() == 0 || !state_.training.ledger || !CheckPlan(journal.active_plan()).ok()) return;
  GenerationInfo& active = state_.generations.active.emplace();
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
  state_.generations.mode = Mode::kHalting;
  state_.generations.halt_deadline = now.steady + state_.options.reconnect_wait;
  state_.recovery.cause = {job::v1::SWITCH_CAUSE_COORDINATOR_RESTARTED, "the coordinator restarted", ""};
  if (journal.handed_over().at_boundary()) {
    state_.hand_over.adopting = journal.handed_over();
    state_.hand_over.adopt_deadline = now.steady + state_.options.adopt_wait;
    if (journal.handed_over().term() > state_.options.term && state_.options.term > 0) {
      // This one handed the job over itself and was started again before the other one claimed the job. The members may
      // be with that one. They give up before this wait ends, so their state must not be taken for lost earlier.
      state_.generations.halt_deadline = state_.hand_over.adopt_deadline = now.steady + state_.options.member_wait;
    }
  } else {
    ++state_.recovery.restarts;
    state_.recovery.budget.Interrupted(RecoveryBudget::Weight::kLoss);
  }
  Log(false,
      fmt::format("the coordinator {}: waiting for {} members of generation {} to reconnect",
                  state_.hand_over.adopting ? "takes over" : "restarted", active.members.size(), active.generation));
}

absl::Status CoordinatorCore::AcceptTerm(int64_t leader_term, Instant now) {
  if (leader_term < state_.plans.leader_term) return model::StaleTerm(leader_term, state_.plans.leader_term);
  if (leader_term == state_.plans.leader_term) return absl::OkStatus();
  Log(false, fmt::format("requests now come from the leader of term {}, before from term {}", leader_term,
                         state_.plans.leader_term));
  state_.plans.leader_term = leader_term;
  Journal(now);
  return absl::OkStatus();
}

absl::Status CoordinatorCore::CheckPlan(const job::v1::ApplyPlanRequest& request) const {
  MEDLEY_RETURN_IF_ERROR(ValidateApply(request));
  std::vector<model::OperationParts> operations;
  for (const model::Layer& layer : state_.options.model.layers) {
    operations.push_back({.tables = layer.sparse, .dense = !layer.sparse && layer.weight_bytes > 0});
  }
  MEDLEY_RETURN_IF_ERROR(model::CheckExecutable(request.plan(), operations));
  if (operations.empty()) return absl::OkStatus();
  // What members would refuse later, after the job has prepared for it.
  MEDLEY_ASSIGN_OR_RETURN(const model::ExecutionPlan plan, model::FromProto(request.plan()));
  return base::Annotate(program::Compile(plan, state_.options.model).status(), "plan");
}

absl::StatusOr<int64_t> CoordinatorCore::ApplyPlan(const job::v1::ApplyPlanRequest& request, Instant now) {
  MEDLEY_RETURN_IF_ERROR(CheckPlan(request));
  if (const std::string& uid = request.plan().job_uid(); !uid.empty() && uid != state_.options.job_uid) {
    return base::InvalidArgument("plan.jobUid: this coordinator leads the job with uid '{}', not '{}'",
                                 state_.options.job_uid, uid);
  }
  if (state_.hand_over.handed_over) return HandedOverError();
  MEDLEY_RETURN_IF_ERROR(AcceptTerm(request.leader_term(), now));
  if (over()) return base::FailedPrecondition("the job is over: {}", state_.ending.message);
  Hold(now);
  if (state_.plans.desired && request.plan().generation() < state_.plans.desired->plan().generation()) {
    return base::FailedPrecondition("plan {} is older than plan {}", request.plan().generation(),
                                    state_.plans.desired->plan().generation());
  }
  if (state_.plans.refused && request.plan().generation() == state_.plans.refused->generation()) {
    return base::FailedPrecondition("plan {} was given up, because {} cannot run it: {}",
                                    state_.plans.refused->generation(), state_.plans.refused->member(),
                                    state_.plans.refused->message());
  }
  const bool tables =
      std::ranges::any_of(state_.options.model.layers, [](const model::Layer& layer) { return layer.sparse; });
  if (tables && state_.plans.desired && state_.plans.desired->plan().has_servers() != request.plan().has_servers()) {
    return base::Unimplemented(
        "plan.servers: a job whose embedding tables are {} cannot train with a plan whose tables are {}: rows do not "
        "move between trainers and parameter servers",
        state_.plans.desired->plan().has_servers() ? "on parameter servers" : "at a trainer",
        request.plan().has_servers() ? "on parameter servers" : "at a trainer");
  }
  state_.meters.cost.SetPrices(request.usd_per_unit_hour());
  const auto generation_of = [&] {
    const int64_t plan = state_.plans.desired->plan().generation();
    if (state_.generations.active && state_.generations.active->request.plan().generation() == plan)
      return state_.generations.active->generation;
    if (state_.generations.next && state_.generations.next->request.plan().generation() == plan)
      return state_.generations.next->generation;
    return std::max(state_.generations.last + 1, plan);
  };
  if (state_.plans.desired && request.plan().generation() == state_.plans.desired->plan().generation()) {
    *state_.plans.desired->mutable_usd_per_unit_hour() = request.usd_per_unit_hour();
    return generation_of();
  }
  state_.plans.desired = request;
  state_.plans.refused.reset();
  if (!state_.plans.first) {
    state_.plans.first = request;
    state_.meters.cost.SetFirstPlan(request.plan());
  }
  state_.recovery.budget.NewPlan();
  state_.recovery.waiting_since = state_.recovery.retry_at = now.steady;
  if (state_.generations.next && !state_.generations.next->switching && state_.generations.mode != Mode::kHalted) {
    AbandonNext({job::v1::SWITCH_CAUSE_PLAN, "a newer plan arrived", ""}, std::nullopt, now);
  }
  Journal(now);
  Advance(now);
  return generation_of();
}

absl::Status CoordinatorCore::Drain(const std::vector<std::string>& members, int64_t leader_term, Instant now) {
  if (state_.hand_over.handed_over) return HandedOverError();
  MEDLEY_RETURN_IF_ERROR(AcceptTerm(leader_term, now));
  PlanOut(members, now);
  return absl::OkStatus();
}

// The operator (Drain) or the members themselves (Leaving) announce that these members will leave.
void CoordinatorCore::PlanOut(const std::vector<std::string>& members, Instant now) {
  Hold(now);
  for (const std::string& name : members) {
    const auto found = state_.members.all.find(name);
    if (found == state_.members.all.end() || found->second.leaving) continue;
    found->second.leaving = true;
    state_.checkpoints.wanted = true;  // ConsiderChange clears it when a generation without the member can start
    if (state_.generations.next && !state_.generations.next->switching && state_.generations.mode != Mode::kHalted &&
        state_.generations.next->members.contains(name)) {
      AbandonNext({job::v1::SWITCH_CAUSE_MEMBER_LEFT, name + " will leave", name}, RecoveryBudget::Weight::kLoss, now);
    }
    const bool has_part = (state_.generations.active && state_.generations.active->members.contains(name)) ||
                          (state_.generations.next && state_.generations.next->members.contains(name));
    if (!has_part && state_.standing_by.standbys.Find(name) != nullptr)
      ReleaseStandby(name, "it leaves, and only stood by", now);
  }
  Advance(now);
}

absl::Status CoordinatorCore::Suspend(const std::string& reason, int64_t leader_term, Instant now) {
  if (state_.hand_over.handed_over) return HandedOverError();
  MEDLEY_RETURN_IF_ERROR(AcceptTerm(leader_term, now));
  Hold(now);
  if (over() || state_.ending.suspending) return absl::OkStatus();
  state_.ending.suspending = true;
  state_.hand_over.successor.reset();
  state_.ending.suspend_deadline = now.steady + state_.options.checkpoint_timeout;
  state_.ending.message = reason;
  if (state_.generations.next && !state_.generations.next->switching && state_.generations.mode == Mode::kTraining) {
    AbandonNext({.text = "the job is suspended"}, std::nullopt, now);
  }
  Advance(now);
  return absl::OkStatus();
}

void CoordinatorCore::OnMessage(const std::string& member, const std::string& instance,
                                const job::v1::SessionRequest& message, Instant now) {
  Hold(now);
  if (over() || state_.hand_over.handed_over) return;
  if (message.has_hello()) {
    OnHello(message.hello(), now);
  } else {
    const auto found = state_.members.all.find(member);
    if (found == state_.members.all.end() || found->second.hello.instance() != instance) return;
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
  if (name.empty() || (state_.members.all.size() >= kMaxMembers && !state_.members.all.contains(name))) {
    return Log(
        true,
        fmt::format("refused the session of member '{}': the name is empty or the job has too many members", name));
  }
  const auto before = state_.members.all.find(name);
  const bool again = before != state_.members.all.end() && before->second.hello.instance() == hello.instance();
  if (before != state_.members.all.end() && !again) {
    const std::string old_instance = before->second.hello.instance();
    OnLost(name, old_instance, now);
  }
  if (over()) return;
  if (!state_.standing_by.standbys.Has(name, hello.instance())) state_.standing_by.standbys.Remove(name, now.steady);
  state_.standing_by.standbys.OnSession(name);
  ConnectedMember& member = state_.members.all[name];
  member.hello = hello;
  if (!again) member.since = now.steady;
  const Cause broken{job::v1::SWITCH_CAUSE_SESSION_BROKEN, fmt::format("the session of {} was interrupted", name),
                     name};
  const auto holder = state_.generations.active ? state_.generations.active->members.find(name)
                                                : std::map<std::string, GenerationMember>::iterator();
  if (state_.generations.active && holder != state_.generations.active->members.end()) {
    const bool same = holder->second.peer.instance() == hello.instance();
    if (!same || hello.held_generation() < state_.generations.active->generation) {
      state_.generations.active->members.erase(holder);
      return LoseHolder({job::v1::SWITCH_CAUSE_MEMBER_LOST, name + " came back without its state", name}, now);
    }
    holder->second.awaited = false;
    holder->second.peer.set_address(hello.address());
    if (state_.hand_over.adopting) return OnReturn(now);
    if (state_.generations.mode == Mode::kHalting) return HaltMember(holder->second);
    return BeginHalt(broken, now);
  }
  if (state_.generations.next && state_.generations.next->members.contains(name))
    AbandonNext(broken, RecoveryBudget::Weight::kLoss, now);
}

void CoordinatorCore::OnLost(const std::string& member, const std::string& instance, Instant now) {
  Hold(now);
  const auto found = state_.members.all.find(member);
  if (found == state_.members.all.end() || found->second.hello.instance() != instance) return;
  // The process may have ended because of the fault.
  const bool faulted = state_.generations.active && !found->second.fault.empty() &&
                       found->second.fault_generation == state_.generations.active->generation;
  const std::string fault = faulted ? ": " + found->second.fault : "";
  state_.members.all.erase(found);
  if (over() || state_.hand_over.handed_over) return;
  state_.standing_by.standbys.Remove(member, now.steady);
  const auto of = [&](const std::optional<GenerationInfo>& generation) {
    if (!generation) return false;
    const auto at = generation->members.find(member);
    return at != generation->members.end() && at->second.peer.instance() == instance;
  };
  const Cause why{job::v1::SWITCH_CAUSE_MEMBER_LOST, member + " was lost" + fault, member};
  if (of(state_.generations.active)) {
    state_.generations.active->members.erase(member);
    LoseHolder(why, now);
  } else if (of(state_.generations.next)) {
    AbandonNext(why, RecoveryBudget::Weight::kLoss, now);
  }
  Advance(now);
}

// Reacts after a holder of the state was removed from state_.generations.active->members.
void CoordinatorCore::LoseHolder(const Cause& why, Instant now) {
  if (state_.generations.mode == Mode::kTraining) return BeginHalt(why, now);
  StopAdopting(why);
  Blame(why);
  if (state_.generations.mode == Mode::kHalted && state_.generations.next)
    AbandonNext(why, RecoveryBudget::Weight::kLoss, now);
  if (state_.generations.mode == Mode::kHalted && !StateIsWhole()) LoseState(why, now);
}

void CoordinatorCore::OnFault(const std::string& member, const job::v1::Fault& fault, Instant now) {
  if (fault.kind() == job::v1::FAULT_KIND_CHECKPOINT) return OnCheckpointFault(member, fault, now);
  if (fault.kind() == job::v1::FAULT_KIND_RESTORE) return OnRestoreFault(member, fault, now);
  if (fault.permanent()) return OnPermanentFault(member, fault, now);
  Log(true,
      fmt::format("{} at step {} of generation {}: {}", member, fault.step(), fault.generation(), fault.message()));
  // The message of a transport error says which call failed, not what it means for the job, so users get another one.
  const bool exchange = fault.kind() == job::v1::FAULT_KIND_EXCHANGE;
  if (const auto found = state_.members.all.find(member); found != state_.members.all.end() && !exchange) {
    found->second.fault = fault.message();
    found->second.fault_generation = fault.generation();
  }
  const Cause why{exchange ? job::v1::SWITCH_CAUSE_EXCHANGE_BROKEN : job::v1::SWITCH_CAUSE_MEMBER_FAULT,
                  exchange ? fmt::format("the exchange of {} with other members broke at step {}", member, fault.step())
                           : fmt::format("{}: {}", member, fault.message()),
                  member};
  if (state_.generations.next && fault.generation() == state_.generations.next->generation) {
    return AbandonNext(why, RecoveryBudget::Weight::kFault, now);
  }
  if (state_.generations.mode == Mode::kTraining && fault.generation() == state_.generations.active->generation)
    BeginHalt(why, now);
}

void CoordinatorCore::OnPermanentFault(const std::string& member, const job::v1::Fault& fault, Instant now) {
  if (state_.generations.next && fault.generation() == state_.generations.next->generation)
    return RefuseNext(member, fault.message(), now);
  const bool in_force = state_.generations.active && fault.generation() == state_.generations.active->generation;
  if (!in_force) {  // it was given up meanwhile
    return Log(true,
               fmt::format("{} of generation {}, which was given up: {}", member, fault.generation(), fault.message()));
  }
  Fail(fmt::format("{}: {}", member, fault.message()), false, now);
}

void CoordinatorCore::Tick(Instant now) {
  Hold(now);
  if (over() || state_.hand_over.handed_over) return;
  CheckDeadlines(now);
  if (over()) return;
  Advance(now);
  if (!over() && !state_.hand_over.handed_over) SendProbes(now);
  if (!over() && state_.training.ledger && now.steady - journaled_at_ >= kJournalInterval) Journal(now);
}

void CoordinatorCore::Advance(Instant now) {
  // Each round changes the mode or the next generation, or is the last one. The bound guards against an endless loop.
  for (int round = 0; round < 8 && !over() && !state_.hand_over.handed_over; ++round) {
    if (state_.hand_over.successor && AdvanceHandOver(now)) return;
    const auto before = std::tuple(state_.generations.mode, state_.generations.last,
                                   state_.generations.next.has_value(), active_generation());
    if (state_.generations.mode == Mode::kHalting) ResolveHalt(now);
    if (!over() && state_.generations.next) AdvanceNext(now);
    if (!over() && state_.generations.mode == Mode::kIdle) AdvanceIdle(now);
    if (!over() && state_.generations.mode == Mode::kHalted) AdvanceHalted(now);
    if (!over() && state_.generations.mode == Mode::kTraining) AdvanceTraining(now);
    if (before == std::tuple(state_.generations.mode, state_.generations.last, state_.generations.next.has_value(),
                             active_generation()))
      return;
  }
}

void CoordinatorCore::Send(const job::v1::Peer& to, job::v1::SessionResponse message) {
  commands_.push_back(SendCommand{to.slot().member(), to.instance(), std::move(message)});
}

const ConnectedMember* CoordinatorCore::Connected(const job::v1::Peer& peer) const {
  const auto found = state_.members.all.find(peer.slot().member());
  if (found == state_.members.all.end() || found->second.hello.instance() != peer.instance()) return nullptr;
  return &found->second;
}

}  // namespace medley::worker
