#include "worker/coordinator/core/generations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "common/base/status.h"
#include "common/model/rows_member.h"
#include "worker/coordinator/core/roster.h"
#include "worker/coordinator/core/state.h"

namespace medley::worker::generations {
namespace {

constexpr int kMaxLag = 1024;  // no plan has more stages

void Halt(int64_t generation, GenerationMember& member, Effects& out) {
  member.halted = false;
  job::v1::SessionResponse message;
  message.mutable_halt()->set_generation(generation);
  out.Send(member.peer, message);
}

}  // namespace

int64_t ActiveOf(const GenerationsState& state) { return state.active ? state.active->generation : 0; }

int64_t NumberOfPlan(const CoreState& view) {
  const GenerationsState& state = view.generations;
  const int64_t plan = view.plans.desired->plan().generation();
  if (state.active && state.active->request.plan().generation() == plan) return state.active->generation;
  if (state.next && state.next->request.plan().generation() == plan) return state.next->generation;
  return std::max(state.last + 1, plan);
}

bool AllWarmed(const GenerationInfo& next) {
  return std::all_of(next.members.begin(), next.members.end(), [](const auto& at) { return at.second.warmed; });
}

bool AllReady(const GenerationInfo& next) {
  return std::all_of(next.members.begin(), next.members.end(), [](const auto& at) { return at.second.ready; });
}

bool HasMember(const std::optional<GenerationInfo>& generation, const std::string& name) {
  return generation && generation->members.contains(name);
}

bool HasProcess(const std::optional<GenerationInfo>& generation, const std::string& name, const std::string& instance) {
  if (!generation) return false;
  const auto at = generation->members.find(name);
  return at != generation->members.end() && at->second.peer.instance() == instance;
}

bool StateIsWhole(const GenerationInfo& active) {
  std::set<std::string> survivors;
  for (const auto& [name, member] : active.members) survivors.insert(name);
  return StateSurvives(active.plan, active.peers, survivors);
}

bool HoldsNothing(const GenerationInfo& active) {
  return std::ranges::any_of(active.members, [](const auto& at) { return at.second.holds_nothing; });
}

int64_t StateStep(const CoreState& view) {
  const int64_t restored = view.generations.active->restored_step;
  return restored > 0 ? restored : view.training.ledger->committed();
}

Request CheckDeadline(const CoreState& view, base::SteadyTime now) {
  const std::optional<GenerationInfo>& next = view.generations.next;
  if (!next || now < next->deadline) return {};
  std::vector<std::string> late;
  for (const auto& [name, member] : next->members) {
    if (next->switching ? !member.ready : !member.warmed) late.push_back(name);
  }
  if (late.empty()) return {};
  const char* what = next->switching ? "ready" : "warm";
  const std::string why = fmt::format("members that were not {} in time: {}", what, fmt::join(late, ", "));
  return AbandonRequest{{job::v1::SWITCH_CAUSE_TIMEOUT, why, model::ProcessOf(late.front())},
                        RecoveryBudget::Weight::kFault};
}

// The message of a transport error says which call failed, not what it means for the job, so users get another one.
Request OnFault(const GenerationsState& state, const std::string& member, const job::v1::Fault& fault) {
  const bool exchange = fault.kind() == job::v1::FAULT_KIND_EXCHANGE;
  const Cause why{exchange ? job::v1::SWITCH_CAUSE_EXCHANGE_BROKEN : job::v1::SWITCH_CAUSE_MEMBER_FAULT,
                  exchange ? fmt::format("the exchange of {} with other members broke at step {}", member, fault.step())
                           : fmt::format("{}: {}", member, fault.message()),
                  member};
  if (state.next && fault.generation() == state.next->generation) {
    return AbandonRequest{why, RecoveryBudget::Weight::kFault};
  }
  if (state.mode == Mode::kTraining && fault.generation() == state.active->generation) return HaltRequest{why};
  return {};
}

Request OnPermanentFault(const GenerationsState& state, const std::string& member, const job::v1::Fault& fault,
                         Effects& out) {
  if (state.next && fault.generation() == state.next->generation) return RefuseRequest{member, fault.message()};
  if (state.active && fault.generation() == state.active->generation) {
    return FailRequest{fmt::format("{}: {}", member, fault.message())};
  }
  // It was given up meanwhile.
  out.Log(true,
          fmt::format("{} of generation {}, which was given up: {}", member, fault.generation(), fault.message()));
  return {};
}

void Begin(GenerationsState& own, const CoreState& view, PrepareRequest request, base::SteadyTime now) {
  own.last = std::max(own.last + 1, request.plan.plan().generation());
  GenerationInfo& next = own.next.emplace();
  next.generation = own.last;
  next.request = std::move(request.plan);
  next.plan = std::move(request.fit.plan);
  next.plan.set_generation(own.last);
  next.peers = std::move(request.fit.peers);
  next.origin = request.origin;
  next.recovery = own.mode != Mode::kTraining && own.from > 0;
  next.restored_step = request.restored_step;
  next.rebuild = std::move(request.rebuild);
  next.cause = std::move(request.cause);
  next.deadline = now + view.options.prepare_timeout;
  for (const job::v1::Peer& peer : next.peers) next.members[peer.slot().member()].peer = peer;
  if (next.origin != job::v1::STATE_ORIGIN_PEERS) return;
  for (const auto& [name, holder] : own.active->members) {
    if (next.members.contains(name)) continue;
    next.members[name] = {.peer = holder.peer, .is_peer = false};
  }
}

void Announce(const CoreState& view, Effects& out) {
  const std::optional<GenerationInfo>& active = view.generations.active;
  const GenerationInfo& next = *view.generations.next;
  out.Add(FenceCommand{active ? active->generation : next.generation});
  out.Log(false, fmt::format("preparing generation {} with {} members: {}", next.generation, next.peers.size(),
                             next.cause.text));
  job::v1::SessionResponse message;
  job::v1::Prepare& prepare = *message.mutable_prepare();
  prepare.set_generation(next.generation);
  *prepare.mutable_plan() = next.plan;
  for (const job::v1::Peer& peer : next.peers) *prepare.add_peers() = peer;
  prepare.set_origin(next.origin);
  if (next.origin == job::v1::STATE_ORIGIN_PEERS) {
    for (const auto& [name, holder] : active->members) *prepare.add_sources() = holder.peer;
    prepare.set_source_generation(active->generation);
  }
  if (next.rebuild) {
    *prepare.mutable_rebuild() = *next.rebuild;
    if (next.rebuild->after_step() > 0) prepare.set_checkpoint(view.checkpoints.last_folder);
  }
  if (next.origin == job::v1::STATE_ORIGIN_CHECKPOINT) prepare.set_checkpoint(view.restoring.position->folder);
  for (const auto& [name, member] : next.members) out.Send(member.peer, message);
}

bool OnWarmed(GenerationsState& own, const std::string& member, const job::v1::Warmed& warmed) {
  if (!own.next || warmed.generation() != own.next->generation) return false;
  const auto found = own.next->members.find(member);
  if (found == own.next->members.end()) return false;
  found->second.warmed = true;
  found->second.rows = warmed.rows();
  found->second.data_digest = warmed.data_digest();
  found->second.program = warmed.program();
  own.next->lag = std::clamp(warmed.lag(), own.next->lag, kMaxLag);
  own.next->averages = own.next->averages || warmed.averages();
  return true;
}

std::optional<SwitchPoint> NextSwitch(const CoreState& view) {
  const GenerationsState& state = view.generations;
  const GenerationInfo& next = *state.next;
  if (!AllWarmed(next)) return std::nullopt;
  const Ledger& ledger = *view.training.ledger;
  if (state.mode == Mode::kTraining &&
      (view.checkpoints.pending || view.evaluation.pending || ledger.committed() != ledger.leased())) {
    return std::nullopt;
  }
  if (next.restored_step > 0) return SwitchPoint{next.restored_step};
  if (state.mode == Mode::kTraining) return SwitchPoint{ledger.committed()};
  if (state.mode == Mode::kHalted) return SwitchPoint{state.halted_step};
  const bool restores = next.origin == job::v1::STATE_ORIGIN_CHECKPOINT;
  return SwitchPoint{restores ? view.restoring.position->step : 0, true};
}

void SendSwitch(GenerationsState& own, const CoreState& view, int64_t step, base::SteadyTime now, Effects& out) {
  own.next->step = step;
  own.next->switching = true;
  own.next->deadline = now + view.options.switch_timeout;
  job::v1::SessionResponse message;
  message.mutable_switch_()->set_generation(own.next->generation);
  message.mutable_switch_()->set_step(step);
  message.mutable_switch_()->set_state_samples(view.training.ledger->SamplesAt(step));
  for (const auto& [name, member] : own.next->members) out.Send(member.peer, message);
}

Request OnReady(GenerationsState& own, const CoreState& view, const std::string& member, const job::v1::Ready& ready) {
  if (!own.next || !own.next->switching || ready.generation() != own.next->generation) return {};
  const auto found = own.next->members.find(member);
  if (found == own.next->members.end()) return {};
  const int64_t step = own.next->step;
  const int64_t samples = view.training.ledger->SamplesAt(step);
  if (ready.step() != step || ready.state_samples() != samples) {
    return FailRequest{fmt::format("the state of {} is at step {} with {} samples, the ledger at step {} with {}",
                                   member, ready.step(), ready.state_samples(), step, samples)};
  }
  found->second.ready = true;
  return {};
}

std::vector<job::v1::Peer> PutInForce(GenerationsState& own, const CoreState& view) {
  own.active = std::move(own.next);
  own.next.reset();
  own.mode = Mode::kTraining;
  own.active->switching = false;
  own.active->rebuild.reset();
  own.from = own.active->generation;
  std::vector<job::v1::Peer> placeless;
  std::erase_if(own.active->members, [&](const auto& at) {
    const auto& [name, member] = at;
    if (member.is_peer) return false;
    const bool stands_by = standing_by::StandsBy(view, name) && !members::Find(view.members, name)->leaving;
    if (!stands_by) placeless.push_back(member.peer);
    return true;
  });
  return placeless;
}

void Abandon(GenerationsState& own, const CoreState& view, Effects& out) {
  job::v1::SessionResponse message;
  message.mutable_abandon()->set_generation(own.next->generation);
  for (const auto& [name, member] : own.next->members) {
    if (members::Connected(view.members, member.peer) != nullptr) out.Send(member.peer, message);
  }
  own.next.reset();
}

void BeginHalt(GenerationsState& own, const CoreState& view, base::SteadyTime now, Effects& out) {
  if (own.next) {
    std::erase_if(own.next->members, [&](const auto& at) { return own.active->members.contains(at.first); });
    Abandon(own, view, out);
  }
  own.mode = Mode::kHalting;
  own.halt_deadline = now + view.options.halt_timeout;
  for (auto& [name, member] : own.active->members) Halt(own.active->generation, member, out);
}

void Halt(GenerationsState& own, const std::string& member, Effects& out) {
  Halt(own.active->generation, own.active->members.at(member), out);
}

void HaltArrived(GenerationsState& own, Effects& out) {
  for (auto& [name, member] : own.active->members) {
    if (!member.awaited) Halt(own.active->generation, member, out);
  }
}

bool OnHalted(GenerationsState& own, const std::string& member, const job::v1::Halted& halted) {
  if (own.mode != Mode::kHalting || halted.generation() != own.active->generation) return false;
  const auto found = own.active->members.find(member);
  if (found == own.active->members.end()) return false;
  found->second.halted = true;
  found->second.applied = halted.applied_step();
  found->second.undo_to = halted.undo_to_step();
  found->second.holds_nothing = halted.holds_nothing();
  found->second.pushes.assign(halted.pushes().begin(), halted.pushes().end());
  return true;
}

std::optional<std::vector<std::string>> LateMembers(const CoreState& view, base::SteadyTime now) {
  std::vector<std::string> late;
  for (const auto& [name, member] : view.generations.active->members) {
    if (!member.halted) late.push_back(name);
  }
  if (!late.empty() && now < view.generations.halt_deadline) return std::nullopt;
  return late;
}

std::variant<int64_t, Cause> MeetingStep(const CoreState& view) {
  const std::map<std::string, GenerationMember>& survivors = view.generations.active->members;
  int64_t step = std::numeric_limits<int64_t>::max();
  for (const auto& [name, member] : survivors) step = std::min(step, member.applied);
  for (const auto& [name, member] : survivors) {
    if (member.undo_to <= step) continue;
    const std::string why =
        fmt::format("{} has applied step {} and cannot roll back to step {}", name, member.applied, step);
    return Cause{job::v1::SWITCH_CAUSE_MEMBER_FAULT, why, name};
  }
  const Ledger& ledger = *view.training.ledger;
  if (step >= ledger.committed() && step <= ledger.total_steps()) return step;
  const std::string why =
      fmt::format("the survivors can only continue from step {}, but step {} is committed", step, ledger.committed());
  return Cause{job::v1::SWITCH_CAUSE_MEMBER_FAULT, why, ""};
}

void Halted(GenerationsState& own, int64_t step) {
  own.halted_step = step;
  own.mode = Mode::kHalted;
}

void LoseState(GenerationsState& own) {
  own.from = std::max(own.from, own.active->generation);
  own.active.reset();
  own.mode = Mode::kIdle;
}

void Lose(GenerationsState& own, const std::string& holder) { own.active->members.erase(holder); }

bool OnReturn(GenerationsState& own, const job::v1::Hello& hello) {
  GenerationMember& holder = own.active->members.at(hello.member());
  const bool same = holder.peer.instance() == hello.instance();
  if (!same || hello.held_generation() < own.active->generation) {
    Lose(own, hello.member());
    return false;
  }
  holder.awaited = false;
  holder.peer.set_address(hello.address());
  return true;
}

void TrainOn(GenerationsState& own) { own.mode = Mode::kTraining; }

void End(GenerationsState& own) {
  own.active.reset();
  own.next.reset();
  own.mode = Mode::kIdle;
}

void AdoptNumber(GenerationsState& own, int64_t generation) { own.last = std::max(own.last, generation); }

void Restore(GenerationsState& own, const job::v1::CoordinatorState& journal) {
  own.last = journal.last_generation();
  own.from = journal.from_generation();
}

void RestoreActive(GenerationsState& own, const job::v1::CoordinatorState& journal, base::SteadyTime deadline) {
  GenerationInfo& active = own.active.emplace();
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
  own.mode = Mode::kHalting;
  own.halt_deadline = deadline;
}

}  // namespace medley::worker::generations
