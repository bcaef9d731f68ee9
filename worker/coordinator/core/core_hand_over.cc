// CoordinatorCore: handing the job over to another coordinator, and taking it over
// (docs/adr/0015-the-coordinator-moves.md).
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/status.h"
#include "worker/coordinator/core/core.h"

namespace medley::worker {

absl::Status CoordinatorCore::HandOver(const job::v1::HandOverRequest& to, Instant now) {
  if (over()) return base::FailedPrecondition("the job is over: {}", state_.ending.message);
  if (state_.ending.suspending) return base::FailedPrecondition("the job is being suspended");
  if (state_.hand_over.handed_over) {
    if (state_.hand_over.successor->term() == to.term()) return absl::OkStatus();
    return base::Unavailable("the job is handed over to the coordinator of term {} at {}",
                             state_.hand_over.successor->term(), state_.hand_over.successor->address());
  }
  if (state_.hand_over.successor && state_.hand_over.successor->term() > to.term()) {
    return base::FailedPrecondition("the coordinator of term {} at {} takes over", state_.hand_over.successor->term(),
                                    state_.hand_over.successor->address());
  }
  Hold(now);
  Log(false, fmt::format("the coordinator of term {} at {} takes over", to.term(), to.address()));
  state_.hand_over.successor = to;
  if (state_.generations.next && !state_.generations.next->switching && state_.generations.mode == Mode::kTraining) {
    AbandonNext({.text = "another coordinator takes over"}, std::nullopt, now);
  }
  Advance(now);
  return absl::OkStatus();
}

void CoordinatorCore::CancelHandOver(Instant now) {
  if (state_.hand_over.handed_over || !state_.hand_over.successor) return;
  Log(true, fmt::format("the coordinator of term {} has given up taking over", state_.hand_over.successor->term()));
  state_.hand_over.successor.reset();
  Advance(now);
}

bool CoordinatorCore::any_member_stays() const {
  return std::any_of(state_.members.all.begin(), state_.members.all.end(),
                     [](const auto& at) { return !at.second.leaving; });
}

// Returns true when the job has been handed over: nothing may follow.
bool CoordinatorCore::AdvanceHandOver(Instant now) {
  if (state_.generations.next && state_.generations.next->switching) return false;  // ends soon, in force or halted
  const bool open = state_.generations.mode == Mode::kTraining &&
                    state_.training.ledger->committed() != state_.training.ledger->leased();
  if (open) return false;  // but a checkpoint whose files are written may be completed later
  state_.hand_over.handed_over = true;
  Journal(now);
  job::v1::SessionResponse message;
  message.mutable_redirect()->set_term(state_.hand_over.successor->term());
  message.mutable_redirect()->set_address(state_.hand_over.successor->address());
  for (const auto& [name, member] : state_.members.all) {
    commands_.push_back(SendCommand{name, member.hello.instance(), message});
  }
  commands_.push_back(HandedOverCommand{state_.hand_over.successor->term()});
  return true;
}

job::v1::HandedOver CoordinatorCore::Boundary(Instant now) const {
  // The one before handed over at this boundary, and nothing has happened since.
  job::v1::HandedOver boundary = state_.hand_over.adopting.value_or(job::v1::HandedOver());
  boundary.set_term(state_.hand_over.successor->term());
  if (state_.hand_over.adopting) return boundary;
  // An evaluation is stopped and begins again, so its members have to halt.
  boundary.set_at_boundary(state_.generations.mode == Mode::kTraining && !state_.evaluation.pending &&
                           state_.generations.active->restored_step == 0);
  const bool attempted = state_.generations.active && state_.training.ledger &&
                         state_.checkpoints.last_attempt.generation == state_.generations.active->generation &&
                         state_.checkpoints.last_attempt.step == state_.training.ledger->committed();
  if (attempted) boundary.set_checkpoint_attempts(state_.checkpoints.last_attempt.number + 1);
  const base::WallTime at =
      now.wall - std::chrono::duration_cast<base::WallTime::duration>(now.steady - state_.training.committed_at);
  const int64_t nanos = std::chrono::duration_cast<base::nanoseconds>(at.time_since_epoch()).count();
  boundary.mutable_last_commit()->set_seconds(nanos / 1'000'000'000);
  boundary.mutable_last_commit()->set_nanos(static_cast<int32_t>(nanos % 1'000'000'000));
  return boundary;
}

// A member of the generation in force has come to this coordinator.
void CoordinatorCore::OnReturn(Instant now) {
  const int64_t step = state_.training.ledger->committed();
  for (const auto& [name, member] : state_.generations.active->members) {
    if (member.awaited) continue;
    const job::v1::Hello& hello = state_.members.all.at(name).hello;
    if (hello.held_generation() == state_.generations.active->generation && hello.held_step() == step) continue;
    return StopAdopting(
        {job::v1::SWITCH_CAUSE_MEMBER_FAULT,
         fmt::format("{} has applied step {} of generation {}, not step {} of generation {}", name, hello.held_step(),
                     hello.held_generation(), step, state_.generations.active->generation),
         name});
  }
  const bool all = std::none_of(state_.generations.active->members.begin(), state_.generations.active->members.end(),
                                [](const auto& at) { return at.second.awaited; });
  if (all) Adopt(now);
}

// Every member holds the state of the last committed step: the generation trains on.
void CoordinatorCore::Adopt(Instant now) {
  const base::WallTime last = base::WallTime(std::chrono::duration_cast<base::WallTime::duration>(
      base::seconds(state_.hand_over.adopting->last_commit().seconds()) +
      base::nanoseconds(state_.hand_over.adopting->last_commit().nanos())));
  if (const int attempts = state_.hand_over.adopting->checkpoint_attempts(); attempts > 0) {
    state_.checkpoints.last_attempt = {state_.generations.active->generation, state_.training.ledger->committed(),
                                       attempts - 1};
  }
  state_.hand_over.adopting.reset();
  state_.generations.mode = Mode::kTraining;
  for (auto& [name, member] : state_.generations.active->members) member.applied = state_.training.ledger->committed();
  state_.training.max_applied = state_.training.ledger->committed();
  BeginAgreements(state_.training.ledger->committed(), now);
  BeginSlowMembers();
  state_.training.committed_at = now.steady;
  state_.recovery.cause = {};
  state_.meters.throughput.Reset(now.steady);
  state_.meters.cost.Pause();
  // The one before may have given a checkpoint up, and nobody knows when it started the last one: one is due.
  if (state_.options.checkpoints) state_.checkpoints.started_at = now.steady - state_.options.checkpoint_interval;
  Journal(now);
  commands_.push_back(RollbackCommand{state_.training.ledger->committed(), state_.generations.active->generation});
  commands_.push_back(FenceCommand{state_.generations.active->generation});
  Log(false, fmt::format("took over: generation {} trains on from step {} after a pause of {:.3f} s",
                         state_.generations.active->generation, state_.training.ledger->committed(),
                         base::ToSeconds(now.wall - last)));
  LeaseSteps(true, now);
}

// The members that have come are asked to halt, as after a restart.
void CoordinatorCore::StopAdopting(const Cause& why) {
  if (!state_.hand_over.adopting) return;
  state_.hand_over.adopting.reset();
  ++state_.recovery.restarts;
  Log(true, "the job cannot be taken over as it is: " + why.text);
  Blame(why);
  for (auto& [name, member] : state_.generations.active->members) {
    if (!member.awaited) HaltMember(member);
  }
}

}  // namespace medley::worker
