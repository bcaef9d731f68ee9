// CoordinatorCore: handing the job over to another coordinator, and taking it over
// (docs/adr/0015-the-coordinator-moves.md).
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/status.h"
#include "worker/coordinator/core/core.h"

namespace medley::worker {

absl::Status CoordinatorCore::HandOver(const job::v1::HandOverRequest& to, Instant now) {
  if (over()) return base::FailedPrecondition("the job is over: {}", message_);
  if (suspending_) return base::FailedPrecondition("the job is being suspended");
  if (handed_over_) {
    if (successor_->term() == to.term()) return absl::OkStatus();
    return base::Unavailable("the job is handed over to the coordinator of term {} at {}", successor_->term(),
                             successor_->address());
  }
  if (successor_ && successor_->term() > to.term()) {
    return base::FailedPrecondition("the coordinator of term {} at {} takes over", successor_->term(),
                                    successor_->address());
  }
  Hold(now);
  Log(false, fmt::format("the coordinator of term {} at {} takes over", to.term(), to.address()));
  successor_ = to;
  if (next_ && !next_->switching && mode_ == Mode::kTraining) {
    AbandonNext({.text = "another coordinator takes over"}, std::nullopt, now);
  }
  Advance(now);
  return absl::OkStatus();
}

void CoordinatorCore::CancelHandOver(Instant now) {
  if (handed_over_ || !successor_) return;
  Log(true, fmt::format("the coordinator of term {} has given up taking over", successor_->term()));
  successor_.reset();
  Advance(now);
}

bool CoordinatorCore::any_member_stays() const {
  return std::any_of(members_.begin(), members_.end(), [](const auto& at) { return !at.second.leaving; });
}

// Returns true when the job has been handed over: nothing may follow.
bool CoordinatorCore::AdvanceHandOver(Instant now) {
  if (next_ && next_->switching) return false;  // ends soon, in force or halted
  const bool open = mode_ == Mode::kTraining && ledger_->committed() != ledger_->leased();
  if (open) return false;  // but a checkpoint whose files are written may be completed later
  handed_over_ = true;
  Journal(now);
  job::v1::SessionResponse message;
  message.mutable_redirect()->set_term(successor_->term());
  message.mutable_redirect()->set_address(successor_->address());
  for (const auto& [name, member] : members_) {
    commands_.push_back(SendCommand{name, member.hello.instance(), message});
  }
  commands_.push_back(HandedOverCommand{successor_->term()});
  return true;
}

job::v1::HandedOver CoordinatorCore::Boundary(Instant now) const {
  // The one before handed over at this boundary, and nothing has happened since.
  job::v1::HandedOver boundary = adopting_.value_or(job::v1::HandedOver());
  boundary.set_term(successor_->term());
  if (adopting_) return boundary;
  // An evaluation is stopped and begins again, so its members have to halt.
  boundary.set_at_boundary(mode_ == Mode::kTraining && !evaluation_ && active_->restored_step == 0);
  const bool attempted = active_ && ledger_ && last_attempt_.generation == active_->generation &&
                         last_attempt_.step == ledger_->committed();
  if (attempted) boundary.set_checkpoint_attempts(last_attempt_.number + 1);
  const base::WallTime at = now.wall - std::chrono::duration_cast<base::WallTime::duration>(now.steady - committed_at_);
  const int64_t nanos = std::chrono::duration_cast<base::nanoseconds>(at.time_since_epoch()).count();
  boundary.mutable_last_commit()->set_seconds(nanos / 1'000'000'000);
  boundary.mutable_last_commit()->set_nanos(static_cast<int32_t>(nanos % 1'000'000'000));
  return boundary;
}

// A member of the generation in force has come to this coordinator.
void CoordinatorCore::OnReturn(Instant now) {
  const int64_t step = ledger_->committed();
  for (const auto& [name, member] : active_->members) {
    if (member.awaited) continue;
    const job::v1::Hello& hello = members_.at(name).hello;
    if (hello.held_generation() == active_->generation && hello.held_step() == step) continue;
    return StopAdopting({job::v1::SWITCH_CAUSE_MEMBER_FAULT,
                         fmt::format("{} has applied step {} of generation {}, not step {} of generation {}", name,
                                     hello.held_step(), hello.held_generation(), step, active_->generation),
                         name});
  }
  const bool all =
      std::none_of(active_->members.begin(), active_->members.end(), [](const auto& at) { return at.second.awaited; });
  if (all) Adopt(now);
}

// Every member holds the state of the last committed step: the generation trains on.
void CoordinatorCore::Adopt(Instant now) {
  const base::WallTime last = base::WallTime(std::chrono::duration_cast<base::WallTime::duration>(
      base::seconds(adopting_->last_commit().seconds()) + base::nanoseconds(adopting_->last_commit().nanos())));
  if (const int attempts = adopting_->checkpoint_attempts(); attempts > 0) {
    last_attempt_ = {active_->generation, ledger_->committed(), attempts - 1};
  }
  adopting_.reset();
  mode_ = Mode::kTraining;
  for (auto& [name, member] : active_->members) member.applied = ledger_->committed();
  max_applied_ = ledger_->committed();
  BeginAgreements(ledger_->committed(), now);
  BeginSlowMembers();
  committed_at_ = now.steady;
  last_interruption_ = {};
  throughput_.Reset(now.steady);
  cost_.Pause();
  // The one before may have given a checkpoint up, and nobody knows when it started the last one: one is due.
  if (options_.checkpoints) checkpoint_at_ = now.steady - options_.checkpoint_interval;
  Journal(now);
  commands_.push_back(RollbackCommand{ledger_->committed(), active_->generation});
  commands_.push_back(FenceCommand{active_->generation});
  Log(false, fmt::format("took over: generation {} trains on from step {} after a pause of {:.3f} s",
                         active_->generation, ledger_->committed(), base::ToSeconds(now.wall - last)));
  LeaseSteps(true, now);
}

// The members that have come are asked to halt, as after a restart.
void CoordinatorCore::StopAdopting(const Cause& why) {
  if (!adopting_) return;
  adopting_.reset();
  ++restarts_;
  Log(true, "the job cannot be taken over as it is: " + why.text);
  Blame(why);
  for (auto& [name, member] : active_->members) {
    if (!member.awaited) HaltMember(member);
  }
}

}  // namespace medley::worker
