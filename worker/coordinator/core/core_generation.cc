// CoordinatorCore: preparing a generation and switching to it.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/status.h"
#include "worker/coordinator/core/core.h"

namespace medley::worker {
namespace {

constexpr size_t kMaxSwitches = 32;
constexpr int kMaxLag = 1024;  // no plan has more stages

void SetTime(base::WallTime at, google::protobuf::Timestamp* out) {
  const int64_t nanos = std::chrono::duration_cast<base::nanoseconds>(at.time_since_epoch()).count();
  out->set_seconds(nanos / 1'000'000'000);
  out->set_nanos(static_cast<int32_t>(nanos % 1'000'000'000));
}

}  // namespace

RosterFit CoordinatorCore::Fit(const job::v1::ApplyPlanRequest& request, Use use) const {
  const bool all = use == Use::kAll;
  RosterFit fit = FitWith(request, use, all);
  if (fit.covers || all || state_.standing_by.standbys.all().empty()) return fit;
  RosterFit slow = FitWith(request, use, true);  // slow is better than not at all
  return slow.covers ? slow : fit;
}

RosterFit CoordinatorCore::FitWith(const job::v1::ApplyPlanRequest& request, Use use, bool standbys) const {
  RosterFit fit = FitPlan(request, [&](const std::string& name) -> const job::v1::Hello* {
    const auto found = state_.members.all.find(name);
    if (found == state_.members.all.end() || found->second.released) return nullptr;
    if (found->second.leaving && use != Use::kAll) return nullptr;
    if (use == Use::kHolders && (!state_.generations.active || !state_.generations.active->members.contains(name)))
      return nullptr;
    if (!standbys && StandsBy(name)) return nullptr;
    return &found->second.hello;
  });
  if (!standbys) std::erase_if(fit.missing, [&](const std::string& name) { return StandsBy(name); });
  return fit;
}

void CoordinatorCore::StartGeneration(const job::v1::ApplyPlanRequest& request, RosterFit fit,
                                      job::v1::StateOrigin origin, Cause cause, Instant now) {
  state_.generations.last = std::max(state_.generations.last + 1, request.plan().generation());
  GenerationInfo& next = state_.generations.next.emplace();
  next.generation = state_.generations.last;
  next.request = request;
  next.plan = std::move(fit.plan);
  next.plan.set_generation(state_.generations.last);
  next.peers = std::move(fit.peers);
  next.origin = origin;
  next.recovery = state_.generations.mode != Mode::kTraining && state_.generations.from > 0;
  next.cause = std::move(cause);
  next.deadline = now.steady + state_.options.prepare_timeout;
  for (const job::v1::Peer& peer : next.peers) next.members[peer.slot().member()].peer = peer;
  if (origin == job::v1::STATE_ORIGIN_PEERS) {
    for (const auto& [name, holder] : state_.generations.active->members) {
      if (next.members.contains(name)) continue;
      next.members[name] = {.peer = holder.peer, .is_peer = false};
    }
  }
  Journal(now);
  commands_.push_back(
      FenceCommand{state_.generations.active ? state_.generations.active->generation : next.generation});
  Log(false,
      fmt::format("preparing generation {} with {} members: {}", next.generation, next.peers.size(), next.cause.text));
  SendPrepare(origin);
}

void CoordinatorCore::SendPrepare(job::v1::StateOrigin origin) {
  job::v1::SessionResponse message;
  job::v1::Prepare& prepare = *message.mutable_prepare();
  prepare.set_generation(state_.generations.next->generation);
  *prepare.mutable_plan() = state_.generations.next->plan;
  for (const job::v1::Peer& peer : state_.generations.next->peers) *prepare.add_peers() = peer;
  prepare.set_origin(origin);
  if (origin == job::v1::STATE_ORIGIN_PEERS) {
    for (const auto& [name, holder] : state_.generations.active->members) *prepare.add_sources() = holder.peer;
    prepare.set_source_generation(state_.generations.active->generation);
  }
  if (origin == job::v1::STATE_ORIGIN_CHECKPOINT) prepare.set_checkpoint(state_.restoring.position->folder);
  for (const auto& [name, member] : state_.generations.next->members) Send(member.peer, message);
}

void CoordinatorCore::AbandonNext(const Cause& why, std::optional<RecoveryBudget::Weight> weight, Instant now) {
  const bool fault = weight == RecoveryBudget::Weight::kFault;
  Log(fault, fmt::format("abandoned generation {}: {}", state_.generations.next->generation, why.text));
  Blame(why);
  state_.restoring.found = false;
  if (weight) {
    state_.recovery.budget.Interrupted(*weight);
    const base::nanoseconds least = fault ? state_.options.retry_wait : base::nanoseconds(0);
    state_.recovery.retry_at = now.steady + std::max(state_.recovery.budget.Pause(state_.options.retry_wait), least);
  }
  if (state_.generations.mode != Mode::kTraining && GiveUp(why, now)) return;
  // Halt brings members of the old generation back to it; Abandon makes the others drop the new one.
  if (state_.generations.next->switching && state_.generations.active) return BeginHalt(why, now, weight.has_value());
  job::v1::SessionResponse message;
  message.mutable_abandon()->set_generation(state_.generations.next->generation);
  for (const auto& [name, member] : state_.generations.next->members) {
    if (Connected(member.peer) != nullptr) Send(member.peer, message);
  }
  state_.generations.next.reset();
  state_.recovery.waiting_since = now.steady;
}

// A copy of the name: it may be that of a peer of state_.generations.next, which ends here.
void CoordinatorCore::RefuseNext(std::string member, const std::string& message, Instant now) {
  if (!state_.generations.active) return Fail(fmt::format("{}: {}", member, message), false, now);
  const int64_t plan = state_.generations.next->request.plan().generation();
  const bool same_plan = plan == state_.generations.active->request.plan().generation();
  const bool replacement = same_plan && !state_.generations.active->members.contains(member);
  if (!same_plan) {
    state_.plans.refused.emplace();
    state_.plans.refused->set_generation(plan);
    state_.plans.refused->set_member(member);
    state_.plans.refused->set_message(message);
    if (state_.plans.desired->plan().generation() == plan) state_.plans.desired = state_.generations.active->request;
    Journal(now);
  }
  AbandonNext({job::v1::SWITCH_CAUSE_MEMBER_FAULT, fmt::format("{}: {}", member, message), member},
              RecoveryBudget::Weight::kFault, now);
  if (replacement) ReleaseWithError(member, message);  // the plan runs without it
}

// Its pod ends with an error, and a new pod takes its place.
void CoordinatorCore::ReleaseWithError(const std::string& member, const std::string& message) {
  const auto found = state_.members.all.find(member);
  if (found == state_.members.all.end()) return;
  found->second.released = true;
  job::v1::SessionResponse release;
  release.mutable_release()->set_exit_code(1);
  release.mutable_release()->set_reason(message);
  commands_.push_back(SendCommand{member, found->second.hello.instance(), std::move(release)});
}

void CoordinatorCore::OnWarmed(const std::string& member, const job::v1::Warmed& warmed, Instant now) {
  if (!state_.generations.next || warmed.generation() != state_.generations.next->generation) return;
  const auto found = state_.generations.next->members.find(member);
  if (found == state_.generations.next->members.end()) return;
  found->second.warmed = true;
  found->second.rows = warmed.rows();
  found->second.data_digest = warmed.data_digest();
  found->second.program = warmed.program();
  state_.generations.next->lag = std::clamp(warmed.lag(), state_.generations.next->lag, kMaxLag);
  state_.generations.next->averages = state_.generations.next->averages || warmed.averages();
  state_.data.bad_rows = std::max(state_.data.bad_rows, warmed.bad_rows());
  if (AllWarmed()) AdoptRows(now);
}

bool CoordinatorCore::AllWarmed() const {
  return std::all_of(state_.generations.next->members.begin(), state_.generations.next->members.end(),
                     [](const auto& at) { return at.second.warmed; });
}

// All trainers must have compiled the plan to the same program: builds that differ would wait for messages that nobody
// sends. What most have is right. Returns false when state_.generations.next was given up.
bool CoordinatorCore::CheckPrograms(Instant now) {
  std::map<std::string, int> trainers;  // by program
  for (const auto& [name, member] : state_.generations.next->members) {
    if (!member.program.empty()) ++trainers[member.program];
  }
  if (trainers.size() < 2) return true;
  const auto right = std::max_element(trainers.begin(), trainers.end(),
                                      [](const auto& a, const auto& b) { return a.second < b.second; });
  std::vector<std::pair<std::string, std::string>> wrong;  // member, sentence
  for (const auto& [name, member] : state_.generations.next->members) {
    if (member.program.empty() || member.program == right->first) continue;
    wrong.emplace_back(name, fmt::format("{} compiled the plan to program {}, {} trainers to {}: the members run "
                                         "different builds of medley-worker",
                                         name, member.program, right->second, right->first));
  }
  AbandonNext({job::v1::SWITCH_CAUSE_MEMBER_FAULT, wrong.front().second, wrong.front().first},
              RecoveryBudget::Weight::kFault, now);
  if (over()) return false;
  for (const auto& [name, why] : wrong) {
    Log(true, "refused a member: " + why);
    ReleaseWithError(name, why);
  }
  return false;
}

// Checks that all trainers have read the same number of rows, and as many as before. Returns false when the next
// generation was given up or the job has failed.
bool CoordinatorCore::AdoptRows(Instant now) {
  if (!CheckPrograms(now) || !CheckTrainData(now)) return false;
  const int last = state_.generations.next->plan.stages_size() - 1;
  std::string first_name;
  int64_t rows = state_.training.ledger ? state_.training.ledger->rows() : -1;
  if (state_.restoring.position && state_.generations.next->origin == job::v1::STATE_ORIGIN_CHECKPOINT)
    rows = state_.restoring.position->ledger.rows();
  for (const job::v1::Peer& peer : state_.generations.next->peers) {
    if (peer.slot().role() != job::v1::MEMBER_ROLE_TRAINER) continue;
    const std::string& name = peer.slot().member();
    const int64_t read = state_.generations.next->members.at(name).rows;
    const bool inner = peer.slot().stage() != 0 && peer.slot().stage() != last;
    if (inner && read == 0) continue;
    if (read <= 0) {
      RefuseNext(name, "the training data has no rows", now);
      return false;
    }
    if (rows >= 0 && read != rows) {
      const std::string other = first_name.empty() ? "earlier trainers read" : first_name + " read";
      RefuseNext(name, fmt::format("the training data differs: this member read {} rows, {} {}", read, other, rows),
                 now);
      return false;
    }
    rows = read;
    first_name = name;
  }
  if (state_.training.ledger) return true;
  auto ledger = Ledger::Create(rows, state_.options.epochs, state_.options.batch_size);
  if (state_.restoring.position && state_.generations.next->origin == job::v1::STATE_ORIGIN_CHECKPOINT)
    ledger = Ledger::FromRecord(state_.restoring.position->ledger);
  if (!ledger.ok()) {
    Fail(std::string(ledger.status().message()), false, now);
    return false;
  }
  state_.training.ledger = *std::move(ledger);
  return true;
}

void CoordinatorCore::AdvanceNext(Instant now) {
  if (!state_.generations.next->switching) {
    if (!AllWarmed()) return;
    if (state_.generations.mode == Mode::kTraining &&
        (state_.checkpoints.pending || state_.evaluation.pending ||
         state_.training.ledger->committed() != state_.training.ledger->leased()))
      return;
    if (state_.generations.next->restored_step > 0) return SendSwitch(state_.generations.next->restored_step, now);
    if (state_.generations.mode == Mode::kTraining) return SendSwitch(state_.training.ledger->committed(), now);
    if (state_.generations.mode == Mode::kHalted) return SendSwitch(state_.generations.halted_step, now);
    const int64_t step =
        state_.generations.next->origin == job::v1::STATE_ORIGIN_CHECKPOINT ? state_.restoring.position->step : 0;
    SetLedger(step, state_.generations.next->generation);
    return SendSwitch(step, now);
  }
  const auto ready = [](const auto& at) { return at.second.ready; };
  if (std::all_of(state_.generations.next->members.begin(), state_.generations.next->members.end(), ready))
    PutInForce(now);
}

void CoordinatorCore::SendSwitch(int64_t step, Instant now) {
  state_.generations.next->step = step;
  state_.generations.next->switching = true;
  state_.generations.next->deadline = now.steady + state_.options.switch_timeout;
  job::v1::SessionResponse message;
  message.mutable_switch_()->set_generation(state_.generations.next->generation);
  message.mutable_switch_()->set_step(step);
  message.mutable_switch_()->set_state_samples(state_.training.ledger->SamplesAt(step));
  for (const auto& [name, member] : state_.generations.next->members) Send(member.peer, message);
}

void CoordinatorCore::OnReady(const std::string& member, const job::v1::Ready& ready, Instant now) {
  if (!state_.generations.next || !state_.generations.next->switching ||
      ready.generation() != state_.generations.next->generation)
    return;
  const auto found = state_.generations.next->members.find(member);
  if (found == state_.generations.next->members.end()) return;
  const int64_t samples = state_.training.ledger->SamplesAt(state_.generations.next->step);
  if (ready.step() != state_.generations.next->step || ready.state_samples() != samples) {
    return Fail(fmt::format("the state of {} is at step {} with {} samples, the ledger at step {} with {}", member,
                            ready.step(), ready.state_samples(), state_.generations.next->step, samples),
                false, now);
  }
  found->second.ready = true;
}

void CoordinatorCore::PutInForce(Instant now) {
  RecordSwitch(now);
  state_.generations.active = std::move(state_.generations.next);
  state_.generations.next.reset();
  state_.generations.mode = Mode::kTraining;
  state_.generations.active->switching = false;
  job::v1::SessionResponse release;
  release.mutable_release()->set_reason("the new generation has no place for this member");
  std::vector<Command> releases;
  for (auto at = state_.generations.active->members.begin(); at != state_.generations.active->members.end();) {
    GenerationMember& member = at->second;
    member.applied = state_.generations.active->step;
    if (member.is_peer) {
      ++at;
      continue;
    }
    const auto found = state_.members.all.find(at->first);
    if (StandsBy(at->first) && !found->second.leaving) {
      at = state_.generations.active->members.erase(at);
      continue;
    }
    state_.standing_by.standbys.Remove(at->first, now.steady);
    if (found != state_.members.all.end()) found->second.released = true;
    releases.push_back(SendCommand{at->first, member.peer.instance(), release});
    at = state_.generations.active->members.erase(at);
  }
  state_.generations.from = state_.generations.active->generation;
  state_.training.max_applied = state_.generations.active->restored_step > 0 ? state_.training.ledger->committed()
                                                                             : state_.generations.active->step;
  state_.restoring.found = false;
  state_.restoring.position.reset();
  if (state_.generations.active->restored_step > 0) state_.best.restores = 0;
  state_.restoring.why_older.clear();
  state_.restoring.failed_restores.clear();
  state_.training.losses.clear();
  state_.meters.throughput.Reset(now.steady);
  state_.meters.stage_times.Reset();
  state_.meters.cost.Pause();
  state_.training.committed_at = now.steady;
  BeginAgreements(state_.generations.active->step, now);
  UpdateStandbys(now);
  BeginSlowMembers();
  Journal(now);
  commands_.push_back(FenceCommand{state_.generations.active->generation});
  Log(false, fmt::format("generation {} {} step {}", state_.generations.active->generation,
                         state_.generations.active->restored_step > 0 ? "holds the exported model, of" : "trains from",
                         state_.generations.active->step));
  LeaseSteps(true, now);
  std::move(releases.begin(), releases.end(), std::back_inserter(commands_));
}

void CoordinatorCore::RecordSwitch(Instant now) {
  if (state_.generations.from == 0 || state_.generations.next->restored_step > 0) return;
  job::v1::SwitchRecord& record = state_.generations.switches.emplace_back();
  record.set_from_generation(state_.generations.from);
  record.set_to_generation(state_.generations.next->generation);
  record.set_reason(state_.generations.next->cause.text);
  record.set_cause(state_.generations.next->cause.kind);
  record.set_member(state_.generations.next->cause.member);
  record.set_pause_seconds(base::ToSeconds(now.steady - state_.training.committed_at));
  record.set_at_step(state_.generations.next->step);
  record.set_recovery(state_.generations.next->recovery);
  record.set_lost_steps(std::max<int64_t>(0, state_.training.max_applied - state_.generations.next->step));
  SetTime(now.wall, record.mutable_at());
  if (state_.generations.switches.size() > kMaxSwitches)
    state_.generations.switches.erase(state_.generations.switches.begin());
}

}  // namespace medley::worker
