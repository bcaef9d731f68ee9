// CoordinatorCore: the inputs.
#include "worker/coordinator/core/core.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/status.h"
#include "common/model/rows_member.h"
#include "worker/coordinator/core/observe.h"

namespace medley::worker {
namespace {

constexpr base::nanoseconds kJournalInterval = base::seconds(10);
constexpr base::nanoseconds kLeastJournalInterval = base::milliseconds(250);

// While nobody trains, a successor must know for how long that was so: about an eighth of it may be unknown.
base::nanoseconds JournalInterval(const CoreState& state, base::SteadyTime now) {
  if (state.generations.mode == Mode::kTraining) return kJournalInterval;
  const base::nanoseconds stood = (now - state.training.committed_at) / 8;
  return std::clamp(stood, kLeastJournalInterval, kJournalInterval);
}

absl::Status HandedOverError() { return base::Unavailable("another coordinator leads the job now"); }

}  // namespace

CoordinatorCore::CoordinatorCore(CoreOptions options, Instant now,
                                 const std::optional<job::v1::CoordinatorState>& journal, const CommittedStep& line)
    : state_(std::move(options), now.steady), journaled_at_(now.steady) {
  if (journal) Restore(*journal, line, now);
}

void CoordinatorCore::Restore(const job::v1::CoordinatorState& journal, const CommittedStep& line, Instant now) {
  plans::Restore(state_.plans, state_.options, journal);
  generations::Restore(state_.generations, journal);
  switches::Restore(state_.switches, journal);
  recovery::Restore(state_.recovery, journal);
  checkpoints::Restore(state_.checkpoints, journal);
  data_check::Restore(state_.data, journal);
  evaluations::Restore(state_.evaluation, journal);
  exported_model::Restore(state_.best, state_, journal);
  training::Restore(state_.training, journal.ledger());
  CostMeter& cost = state_.meters.cost;
  cost.Restore(journal.usd_spent(), journal.usd_first_plan(), journal.first_plan_throughput(), journal.paid_samples());
  state_.meters.activity.Restore(journal.units(), journal.outcome() == job::v1::JOB_PHASE_SUSPENDED, line, now.wall);
  if (state_.plans.first) cost.SetFirstPlan(state_.plans.first->plan());
  if (state_.plans.desired) cost.SetPrices(state_.plans.desired->usd_per_unit_hour());
  if (ending::Restore(state_.ending, journal)) {
    out_.Add(FinishCommand{state_.ending.outcome == job::v1::JOB_PHASE_COMPLETE ? 0 : 2});
    return;
  }
  const bool trained = journal.active().generation() > 0 && state_.training.ledger;
  if (trained && plans::Check(state_.options, journal.active_plan()).ok()) RestoreActive(journal, now);
}

void CoordinatorCore::RestoreActive(const job::v1::CoordinatorState& journal, Instant now) {
  const CoreOptions& options = state_.options;
  const job::v1::HandedOver& from = journal.handed_over();
  base::SteadyTime halt_deadline = now.steady + options.reconnect_wait;
  base::SteadyTime adopt_deadline = now.steady + options.adopt_wait;
  if (from.at_boundary() && from.term() > options.term && options.term > 0) {
    // This one handed the job over itself and was started again before the other one claimed the job. The members may
    // be with that one. They give up before this wait ends, so their state must not be taken for lost earlier.
    halt_deadline = adopt_deadline = now.steady + options.member_wait;
  }
  generations::RestoreActive(state_.generations, journal, halt_deadline);
  standing_by::Restore(state_.standing_by, journal, now.steady);
  recovery::ShowCause(state_.recovery, {job::v1::SWITCH_CAUSE_COORDINATOR_RESTARTED, "the coordinator restarted", ""});
  if (from.at_boundary()) hand_over::BeginAdopting(state_.hand_over, from, adopt_deadline);
  if (!from.at_boundary()) recovery::OnRestart(state_.recovery);
  const GenerationInfo& active = *state_.generations.active;
  out_.Log(false,
           fmt::format("the coordinator {}: waiting for {} members of generation {} to reconnect",
                       from.at_boundary() ? "takes over" : "restarted", active.members.size(), active.generation));
}

absl::Status CoordinatorCore::AcceptTerm(int64_t leader_term, Instant now) {
  MEDLEY_ASSIGN_OR_RETURN(const bool newer, plans::AcceptTerm(state_.plans, leader_term, out_));
  if (newer) Journal(now);
  return absl::OkStatus();
}

absl::StatusOr<int64_t> CoordinatorCore::ApplyPlan(const job::v1::ApplyPlanRequest& request, Instant now) {
  MEDLEY_RETURN_IF_ERROR(plans::Check(state_.options, request));
  if (const std::string& uid = request.plan().job_uid(); !uid.empty() && uid != state_.options.job_uid) {
    return base::InvalidArgument("plan.jobUid: this coordinator leads the job with uid '{}', not '{}'",
                                 state_.options.job_uid, uid);
  }
  if (handed_over()) return HandedOverError();
  MEDLEY_RETURN_IF_ERROR(AcceptTerm(request.leader_term(), now));
  if (over()) return base::FailedPrecondition("the job is over: {}", state_.ending.message);
  Hold(now);
  MEDLEY_RETURN_IF_ERROR(plans::MayFollow(state_.plans, state_.options, request));
  state_.meters.cost.SetPrices(request.usd_per_unit_hour());
  const bool first = !state_.plans.first;
  if (!plans::Accept(state_.plans, request)) return generations::NumberOfPlan(state_);
  if (first) state_.meters.cost.SetFirstPlan(request.plan());
  recovery::OnPlan(state_.recovery, now.steady);
  if (IsPreparing() && state_.generations.mode != Mode::kHalted) {
    Abandon({job::v1::SWITCH_CAUSE_PLAN, "a newer plan arrived", ""}, std::nullopt, now);
  }
  Journal(now);
  Advance(now);
  return generations::NumberOfPlan(state_);
}

absl::Status CoordinatorCore::Drain(const std::vector<std::string>& members, int64_t leader_term, Instant now) {
  if (handed_over()) return HandedOverError();
  MEDLEY_RETURN_IF_ERROR(AcceptTerm(leader_term, now));
  PlanOut(members, now);
  return absl::OkStatus();
}

// The operator (Drain) or the members themselves (Leaving) announce that these members will leave. The shard in a
// trainer leaves with it.
void CoordinatorCore::PlanOut(const std::vector<std::string>& names, Instant now) {
  Hold(now);
  for (const std::string& member : names) {
    const std::string name = model::ProcessOf(member);
    if (!members::Leave(state_.members, name)) continue;
    members::Leave(state_.members, model::RowsMember(name));
    checkpoints::Want(state_.checkpoints, true, now.steady);  // until a generation without the member can start
    const GenerationsState& generations = state_.generations;
    if (IsPreparing() && generations.mode != Mode::kHalted && generations::HasMember(generations.next, name)) {
      Abandon({job::v1::SWITCH_CAUSE_MEMBER_LEFT, name + " will leave", name}, RecoveryBudget::Weight::kLoss, now);
    }
    const bool has_part =
        generations::HasMember(generations.active, name) || generations::HasMember(generations.next, name);
    if (!has_part && state_.standing_by.standbys.Find(name) != nullptr) {
      ReleaseStandby(name, "it leaves, and only stood by", now);
    }
  }
  Advance(now);
}

absl::Status CoordinatorCore::Suspend(const std::string& reason, int64_t leader_term, Instant now) {
  if (handed_over()) return HandedOverError();
  MEDLEY_RETURN_IF_ERROR(AcceptTerm(leader_term, now));
  Hold(now);
  if (!ending::Suspend(state_.ending, reason, now.steady + state_.options.checkpoint_timeout)) return absl::OkStatus();
  hand_over::DropSuccessor(state_.hand_over);
  if (IsPreparing() && state_.generations.mode == Mode::kTraining) {
    Abandon({.text = "the job is suspended"}, std::nullopt, now);
  }
  Advance(now);
  return absl::OkStatus();
}

absl::Status CoordinatorCore::HandOver(const job::v1::HandOverRequest& to, Instant now) {
  MEDLEY_ASSIGN_OR_RETURN(const bool news, hand_over::Accept(state_.hand_over, state_, to, out_));
  if (!news) return absl::OkStatus();
  Hold(now);
  if (IsPreparing() && state_.generations.mode == Mode::kTraining) {
    Abandon({.text = "another coordinator takes over"}, std::nullopt, now);
  }
  Advance(now);
  return absl::OkStatus();
}

void CoordinatorCore::CancelHandOver(Instant now) {
  if (hand_over::Cancel(state_.hand_over, out_)) Advance(now);
}

void CoordinatorCore::OnMessage(const std::string& member, const std::string& instance,
                                const job::v1::SessionRequest& message, Instant now) {
  Hold(now);
  if (over() || handed_over()) return;
  if (message.has_hello()) {
    OnHello(message.hello(), now);
  } else {
    const ConnectedMember* from = members::Find(state_.members, member);
    if (from == nullptr || from->hello.instance() != instance) return;
    if (message.has_warmed()) OnWarmed(member, message.warmed(), now);
    if (message.has_ready()) Do(generations::OnReady(state_.generations, state_, member, message.ready()), now);
    if (message.has_progress()) OnProgress(member, message.progress(), now);
    if (message.has_fault() && !from->released) OnFault(member, message.fault(), now);
    if (message.has_halted()) OnHalted(member, message.halted());
    if (message.has_checkpointed()) {
      checkpoints::OnCheckpointed(state_.checkpoints, member, message.checkpointed());
    }
    if (message.has_evaluating()) {
      evaluations::OnEvaluating(state_.evaluation, state_, member, message.evaluating(), now.steady);
    }
    if (message.has_evaluated()) OnEvaluated(member, message.evaluated(), now);
    if (message.has_probed()) {
      standing_by::OnProbed(state_.standing_by, state_, member, message.probed(), now.steady, out_);
    }
    if (message.has_leaving()) return PlanOut({member}, now);
  }
  Advance(now);
}

void CoordinatorCore::OnHello(const job::v1::Hello& hello, Instant now) {
  const std::string& name = hello.member();
  if (!members::MayConnect(state_.members, name, out_)) return;
  const ConnectedMember* before = members::Find(state_.members, name);
  if (before != nullptr && before->hello.instance() != hello.instance()) {
    OnLost(name, std::string(before->hello.instance()), now);
  }
  if (over()) return;
  standing_by::OnSession(state_.standing_by, hello, now.steady);
  members::Connect(state_.members, hello, now.steady);
  const std::string process = model::ProcessOf(name);
  const Cause broken{job::v1::SWITCH_CAUSE_SESSION_BROKEN, fmt::format("the session of {} was interrupted", process),
                     process};
  const GenerationsState& generations = state_.generations;
  if (generations::HasMember(generations.active, name)) {
    const bool awaited = generations.active->members.at(name).awaited;
    if (!generations::OnReturn(state_.generations, hello)) {
      return LoseHolder({job::v1::SWITCH_CAUSE_MEMBER_LOST, process + " came back without its state", process}, now);
    }
    if (awaited && !model::IsRowsMember(name)) {
      const bool moves = state_.hand_over.adopting.has_value();
      state_.meters.activity.Returned(name, generations.active->members.at(name).peer.slot().pool(),
                                      moves ? goodput::Category::kMove : goodput::Category::kRecovery, now.wall);
    }
    if (state_.hand_over.adopting) return OnReturn(now);
    if (generations.mode == Mode::kHalting) return generations::Halt(state_.generations, name, out_);
    return BeginHalt(broken, now);
  }
  // The state was lost, and this member waits for the checkpoint since another coordinator led.
  ActivityMeter& activity = state_.meters.activity;
  const bool held = hello.held_generation() > 0;
  if (!generations.active && (held || activity.JustRestored(now.wall)) && !model::IsRowsMember(name)) {
    activity.Returned(name, hello.pool(), goodput::Category::kRecovery, now.wall, held);
  }
  if (generations::HasMember(generations.next, name)) Abandon(broken, RecoveryBudget::Weight::kLoss, now);
}

void CoordinatorCore::OnLost(const std::string& name, const std::string& instance, Instant now) {
  Hold(now);
  const ConnectedMember* member = members::Find(state_.members, name);
  if (member == nullptr || member->hello.instance() != instance) return;
  const GenerationsState& generations = state_.generations;
  // The process may have ended because of the fault.
  const bool released = member->released && generations.mode != Mode::kTraining;  // AwaitLoss
  const std::string fault = generations.active ? members::FaultIn(*member, generations.active->generation) : "";
  members::Remove(state_.members, name);
  if (over() || handed_over()) return;
  standing_by::Remove(state_.standing_by, name, now.steady);
  const std::string process = model::ProcessOf(name);
  const Cause lost{job::v1::SWITCH_CAUSE_MEMBER_LOST, process + " was lost" + (fault.empty() ? "" : ": " + fault),
                   process};
  const Cause why = released ? state_.recovery.cause : lost;
  if (generations::HasProcess(generations.active, name, instance)) {
    generations::Lose(state_.generations, name);
    LoseHolder(why, now);
  } else if (generations::HasProcess(generations.next, name, instance)) {
    Abandon(why, RecoveryBudget::Weight::kLoss, now);
  }
  Advance(now);
}

void CoordinatorCore::OnFault(const std::string& member, const job::v1::Fault& fault, Instant now) {
  if (fault.kind() == job::v1::FAULT_KIND_CHECKPOINT) {
    return Do(checkpoints::OnFault(state_.checkpoints, state_, member, fault, out_), now);
  }
  if (rebuilding::IsOfRebuild(state_, fault)) {
    rebuilding::OnFailed(state_.rebuilding, state_, member, fault);
    return LoseState(rebuilding::Explained(state_.recovery.cause, state_.rebuilding.why), now);
  }
  if (fault.kind() == job::v1::FAULT_KIND_RESTORE) {
    Cause shown = state_.recovery.cause;  // users see why the job restores, and which checkpoint it skips
    const Request request = restoring::OnFault(state_.restoring, state_, member, fault, out_);
    Do(request, now);
    if (!IsNothing(request) && !shown.text.empty()) recovery::ShowCause(state_.recovery, std::move(shown));
    return;
  }
  const std::string process = model::ProcessOf(member);
  if (fault.permanent()) return Do(generations::OnPermanentFault(state_.generations, process, fault, out_), now);
  out_.Log(true, fmt::format("{} at step {} of generation {}: {}", member, fault.step(), fault.generation(),
                             fault.message()));
  if (fault.kind() != job::v1::FAULT_KIND_EXCHANGE) members::NoteFault(state_.members, member, fault);
  Do(generations::OnFault(state_.generations, process, fault), now);
}

void CoordinatorCore::OnCheckpointFound(const absl::StatusOr<CheckpointSearch>& found, Instant now) {
  Hold(now);
  if (!state_.restoring.finding || over() || handed_over()) return;
  const restoring::SearchResult result = restoring::OnFound(state_.restoring, state_, found, out_);
  if (result.retry_after) return recovery::RetryAt(state_.recovery, now.steady + *result.retry_after);
  if (!IsNothing(result.request)) return Do(result.request, now);
  if (result.adopted) {
    const CheckpointPosition& position = *state_.restoring.position;
    checkpoints::Adopt(state_.checkpoints, position, out_);
    generations::AdoptNumber(state_.generations, position.generation);
  }
  Advance(now);
}

void CoordinatorCore::OnManifestWritten(const std::string& folder, const absl::Status& status, Instant now) {
  Hold(now);
  if (over() || handed_over()) return;
  const std::optional<PendingManifest>& writing = state_.checkpoints.writing;
  if (!writing || writing->folder != folder) return;  // it came after the deadline
  const checkpoints::ManifestResult result =
      checkpoints::OnManifestWritten(state_.checkpoints, folder, status, now.steady, out_);
  if (result.saved) Journal(now, true);  // the manifest says it too
  Do(result.request, now);
  if (!over()) Advance(now);
}

void CoordinatorCore::OnExported(int64_t step, const absl::Status& status, Instant now) {
  Hold(now);
  const std::optional<PendingExport>& pending = state_.ending.exporting;
  if (over() || handed_over() || !pending || step != pending->step) return;  // it came after the deadline
  const std::string why(status.message());
  switch (ending::OnExported(state_.ending, state_, step, status)) {
    case ending::Exported::kSaved:
      checkpoints::Saved(state_.checkpoints, out_);
      break;
    case ending::Exported::kBestIsDamaged:
      exported_model::DropBest(state_.best, state_, why, out_);
      break;
    case ending::Exported::kFailed:
      checkpoints::Judge(state_.checkpoints, state_, step, status);
      SaveFailed(why, "", now);
      break;
  }
  if (!over()) Advance(now);
}

void CoordinatorCore::OnVolumeReturned(Instant now) { training::ResetPause(state_.training, now.steady); }

void CoordinatorCore::Tick(Instant now) {
  Hold(now);
  if (over() || handed_over()) return;
  CheckDeadlines(now);
  if (over()) return;
  Advance(now);
  if (over()) return;
  if (!handed_over()) standing_by::SendProbes(state_.standing_by, state_, now.steady, out_);
  if (state_.training.ledger && now.steady - journaled_at_ >= JournalInterval(state_, now.steady)) Journal(now, true);
}

job::v1::Observation CoordinatorCore::Observe(Instant now) const { return worker::Observe(state_, now); }

void CoordinatorCore::Journal(Instant now, bool periodic) {
  journaled_at_ = now.steady;
  out_.Add(JournalCommand{DurableState(state_, now), periodic});
}

void CoordinatorCore::Hold(Instant now) {
  state_.meters.cost.Hold(now.steady, members::UnitsByPool(state_.members));
  const int64_t step = state_.training.ledger ? state_.training.ledger->committed() : 0;
  const auto line = state_.meters.activity.Hold(now, ActivityNow(state_), step);
  if (!line) return;
  const base::WallTime committed = now.wall - (now.steady - state_.training.committed_at);
  out_.Log(false, fmt::format("{} committed={:.3f}", *line, base::ToSeconds(committed.time_since_epoch())));
}

bool CoordinatorCore::IsPreparing() const {
  const std::optional<GenerationInfo>& next = state_.generations.next;
  return next && !next->switching;
}

}  // namespace medley::worker
