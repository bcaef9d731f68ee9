#include "worker/coordinator/core/hand_over.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/base/status.h"
#include "worker/coordinator/core/state.h"

namespace medley::worker::hand_over {

bool IsPossible(const CoreState& view) {
  const GenerationsState& generations = view.generations;
  if (generations.next && generations.next->switching) return false;  // ends soon, in force or halted
  // A checkpoint whose files are written may be completed later.
  return generations.mode != Mode::kTraining || view.training.ledger->committed() == view.training.ledger->leased();
}

job::v1::HandedOver Boundary(const CoreState& view, Instant now) {
  // The one before handed over at this boundary, and nothing has happened since.
  job::v1::HandedOver boundary = view.hand_over.adopting.value_or(job::v1::HandedOver());
  boundary.set_term(view.hand_over.successor->term());
  if (view.hand_over.adopting) return boundary;
  const std::optional<GenerationInfo>& active = view.generations.active;
  // An evaluation is stopped and begins again, so its members have to halt.
  boundary.set_at_boundary(view.generations.mode == Mode::kTraining && !view.evaluation.pending &&
                           active->restored_step == 0);
  const CheckpointAttempt& attempt = view.checkpoints.last_attempt;
  const bool attempted = active && view.training.ledger && attempt.generation == active->generation &&
                         attempt.step == view.training.ledger->committed();
  if (attempted) boundary.set_checkpoint_attempts(attempt.number + 1);
  const base::nanoseconds since = now.steady - view.training.committed_at;
  const base::WallTime at = now.wall - std::chrono::duration_cast<base::WallTime::duration>(since);
  const int64_t nanos = std::chrono::duration_cast<base::nanoseconds>(at.time_since_epoch()).count();
  boundary.mutable_last_commit()->set_seconds(nanos / 1'000'000'000);
  boundary.mutable_last_commit()->set_nanos(static_cast<int32_t>(nanos % 1'000'000'000));
  return boundary;
}

void Redirect(const CoreState& view, Effects& out) {
  const job::v1::HandOverRequest& successor = *view.hand_over.successor;
  job::v1::SessionResponse message;
  message.mutable_redirect()->set_term(successor.term());
  message.mutable_redirect()->set_address(successor.address());
  for (const auto& [name, member] : view.members.all) {
    out.Add(SendCommand{name, member.hello.instance(), message});
  }
  out.Add(HandedOverCommand{successor.term()});
}

Arrival OnReturn(const CoreState& view) {
  const GenerationInfo& active = *view.generations.active;
  const int64_t step = view.training.ledger->committed();
  Arrival arrival{.all = true, .wrong = std::nullopt};
  for (const auto& [name, member] : active.members) {
    if (member.awaited) arrival.all = false;
    if (member.awaited) continue;
    const job::v1::Hello& hello = members::Find(view.members, name)->hello;
    if (hello.held_generation() == active.generation && hello.held_step() == step) continue;
    arrival.wrong = {job::v1::SWITCH_CAUSE_MEMBER_FAULT,
                     fmt::format("{} has applied step {} of generation {}, not step {} of generation {}", name,
                                 hello.held_step(), hello.held_generation(), step, active.generation),
                     name};
    return arrival;
  }
  return arrival;
}

base::WallTime LastCommit(const job::v1::HandedOver& adopting) {
  return base::WallTime(std::chrono::duration_cast<base::WallTime::duration>(
      base::seconds(adopting.last_commit().seconds()) + base::nanoseconds(adopting.last_commit().nanos())));
}

absl::StatusOr<bool> Accept(HandOverState& own, const CoreState& view, const job::v1::HandOverRequest& to,
                            Effects& out) {
  if (view.ending.over()) return base::FailedPrecondition("the job is over: {}", view.ending.message);
  if (view.ending.suspending) return base::FailedPrecondition("the job is being suspended");
  if (own.handed_over) {
    if (own.successor->term() == to.term()) return false;
    return base::Unavailable("the job is handed over to the coordinator of term {} at {}", own.successor->term(),
                             own.successor->address());
  }
  if (own.successor && own.successor->term() > to.term()) {
    return base::FailedPrecondition("the coordinator of term {} at {} takes over", own.successor->term(),
                                    own.successor->address());
  }
  out.Log(false, fmt::format("the coordinator of term {} at {} takes over", to.term(), to.address()));
  own.successor = to;
  return true;
}

bool Cancel(HandOverState& own, Effects& out) {
  if (own.handed_over || !own.successor) return false;
  out.Log(true, fmt::format("the coordinator of term {} has given up taking over", own.successor->term()));
  own.successor.reset();
  return true;
}

void DropSuccessor(HandOverState& own) { own.successor.reset(); }

void Complete(HandOverState& own) { own.handed_over = true; }

void BeginAdopting(HandOverState& own, const job::v1::HandedOver& from, base::SteadyTime deadline) {
  own.adopting = from;
  own.adopt_deadline = deadline;
}

void EndAdopting(HandOverState& own) { own.adopting.reset(); }

}  // namespace medley::worker::hand_over
