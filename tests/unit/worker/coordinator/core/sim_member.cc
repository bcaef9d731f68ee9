#include "tests/unit/worker/coordinator/core/sim_member.h"

#include <fmt/format.h>

#include <algorithm>

namespace medley::worker::sim {

int64_t State::Samples() const {
  int64_t sum = 0;
  for (int count : counts) sum += count;
  return sum;
}

Member::Member(Shared& shared, job::v1::MemberSlot s, std::string i)
    : slot(std::move(s)), instance(std::move(i)), shared_(shared) {}

void Member::Connect() {
  connected = true;
  job::v1::SessionRequest message;
  job::v1::Hello& hello = *message.mutable_hello();
  hello.set_member(slot.member());
  hello.set_role(slot.role());
  hello.set_pool(slot.pool());
  hello.set_address("127.0.0.1");
  hello.set_instance(instance);
  if (held_) {
    hello.set_held_generation(held_->generation);
    hello.set_held_step(held_->state.step);
  }
  Say(message);
}

void Member::Disconnect() {
  connected = false;
  other_session_ = true;
  inbox.clear();
  outbox.clear();
}

void Member::Die(bool contributed) {
  alive = false;
  contributed_ = contributed;
  Disconnect();
}

void Member::Halt(int64_t generation) {
  prepare_.reset();
  switch_.reset();
  warmed_ = false;
  leases_.clear();
  checkpoints_.clear();
  evaluate_.reset();
  drain_ = 0;
  if (old_ && old_->generation == generation) {
    held_ = std::move(old_);
    peers_ = old_peers_;
  }
  old_.reset();
  if (!held_ || held_->generation != generation) {
    violation = fmt::format("{}: Halt({}) but it holds {}", slot.member(), generation, held_ ? held_->generation : 0);
    return;
  }
  job::v1::SessionRequest answer;
  answer.mutable_halted()->set_generation(generation);
  const std::deque<State>& kept = shared_.averages ? held_->agreed : held_->undo;
  const int64_t step = held_->state.step;
  answer.mutable_halted()->set_applied_step(shared_.averages ? kept.back().step : step);
  answer.mutable_halted()->set_undo_to_step(kept.empty() ? step : kept.front().step);
  for (const auto& [pushed, how] : pushes_) {
    job::v1::KeptPushes& to = *answer.mutable_halted()->add_pushes();
    to.set_first_step(pushed);
    to.set_last_step(pushed);
    to.set_trainer(how.trainer);
    to.set_trainers(how.trainers);
    to.set_shards(how.shards);
  }
  Say(answer);
}

bool Member::Receive() {
  if (inbox.empty()) return false;
  const job::v1::SessionResponse message = std::move(inbox.front());
  inbox.pop_front();
  if (message.has_prepare()) {
    if (prepare_ && !other_session_) violation = slot.member() + ": a second Prepare without Abandon";
    other_session_ = false;
    switch_.reset();
    prepare_ = message.prepare();
    warmed_ = false;
  } else if (message.has_switch_()) {
    if (!prepare_ || prepare_->generation() != message.switch_().generation())
      violation = slot.member() + ": Switch unprepared";
    switch_ = message.switch_();
  } else if (message.has_abandon()) {
    if (prepare_ && prepare_->generation() == message.abandon().generation()) {
      prepare_.reset();
      switch_.reset();
    } else if (held_ && held_->generation == message.abandon().generation()) {
      held_ = std::move(old_);
      old_.reset();
    }
  } else if (message.has_halt()) {
    Halt(message.halt().generation());
  } else if (message.has_lease()) {
    if (!held_ || held_->generation != message.lease().generation()) {
      violation = slot.member() + ": a Lease of a generation that it does not hold";
      return true;
    }
    old_.reset();
    leases_.insert(leases_.end(), message.lease().steps().begin(), message.lease().steps().end());
  } else if (message.has_checkpoint()) {
    checkpoints_.push_back(message.checkpoint());
  } else if (message.has_drain()) {
    if (!leases_.empty() && leases_.back().step() != message.drain().step()) {
      violation = fmt::format("{}: Drain({}) after the lease of step {}", slot.member(), message.drain().step(),
                              leases_.back().step());
    }
    drain_ = message.drain().step();
  } else if (message.has_probe()) {
    if (!leases_.empty() || prepare_) violation = slot.member() + ": a Probe while it takes part in a generation";
    job::v1::SessionRequest answer;
    answer.mutable_probed()->set_id(message.probe().id());
    answer.mutable_probed()->set_seconds(0.01 * slowness);
    Say(answer);
  } else if (message.has_evaluate()) {
    evaluate_ = message.evaluate();
  } else if (message.has_release()) {
    Die(true);
  } else if (message.has_redirect()) {
    Disconnect();
  }
  return true;
}

bool Member::Work() {
  if (prepare_ && !warmed_) {
    warmed_ = true;
    job::v1::SessionRequest answer;
    if (IsRebuilt() && prepare_->rebuild().after_step() > 0 && !shared_.checkpoints.contains(prepare_->checkpoint())) {
      answer.mutable_fault()->set_generation(prepare_->generation());
      answer.mutable_fault()->set_kind(job::v1::FAULT_KIND_RESTORE);
      answer.mutable_fault()->set_permanent(true);
      answer.mutable_fault()->set_message("the checkpoint does not exist");
      Say(answer);
      return true;
    }
    answer.mutable_warmed()->set_generation(prepare_->generation());
    if (slot.role() == job::v1::MEMBER_ROLE_TRAINER) {
      answer.mutable_warmed()->set_rows(shared_.rows);
      answer.mutable_warmed()->set_lag(shared_.lag);
      answer.mutable_warmed()->set_averages(shared_.averages);
    }
    Say(answer);
    return true;
  }
  if (switch_ && FinishSwitch()) return true;
  if (WriteCheckpoint()) return true;
  if (Apply()) return true;
  if (evaluate_ && held_ && held_->state.step == evaluate_->step()) {
    const bool last = evaluate_->step() == shared_.steps;
    if (shared_.separate_test && evaluate_->data() == job::v1::EVALUATION_DATA_TEST)
      shared_.tested.insert(evaluate_->step());
    const bool scores = !evaluate_->only_transform();
    evaluate_.reset();
    for (int count : held_->state.counts) {
      if (count > 1 || (last && count != 1))
        violation = fmt::format("{}: a sample was trained {} times", slot.member(), count);
    }
    job::v1::SessionRequest answer;
    answer.mutable_evaluated()->set_samples(scores ? 1 : 0);
    if (scores) (*answer.mutable_evaluated()->mutable_sums())["score"] = ScoreOf(held_->state.step);
    answer.mutable_evaluated()->mutable_transform();
    Say(answer);
    return true;
  }
  return false;
}

bool Member::MayApply(int64_t step) const {
  for (const job::v1::Peer& peer : peers_) {
    const Member& other = *shared_.by_instance.at(peer.instance());
    if (&other == this) continue;
    // A peer sends its part of `step` after it has applied step - lag in this generation. A dead peer may have sent it
    // before it died.
    const int64_t needed = step - shared_.lag;
    const bool sent = other.held_ && other.held_->generation == held_->generation && other.held_->state.step >= needed;
    if (!sent) return false;
    if (other.held_->state.step > needed) continue;
    if (!other.alive && !other.contributed_) return false;
    if (other.alive && other.leases_.empty()) return false;
  }
  return true;
}

// Trainers of the first stage complete a step when they have begun those that follow.
bool Member::MayComplete(int64_t step) const {
  const bool first = slot.role() == job::v1::MEMBER_ROLE_TRAINER && slot.stage() == 0;
  return !first || step <= drain_ || std::ssize(leases_) >= shared_.lag;
}

bool Member::Apply() {
  if (!held_ || leases_.empty() || leases_.front().step() != held_->state.step + 1) return false;
  if (!checkpoints_.empty() && checkpoints_.front().step() == held_->state.step) return false;
  const job::v1::StepLease lease = leases_.front();
  const bool alone = shared_.averages && !lease.agrees();
  if ((!alone && !MayApply(lease.step())) || !MayComplete(lease.step())) return false;
  leases_.pop_front();
  KeepPush(lease);
  held_->undo.push_back(held_->state);
  if (std::ssize(held_->undo) > (shared_.without_undo ? 0 : shared_.lag)) held_->undo.pop_front();
  held_->state.step = lease.step();
  for (int i = 0; i < lease.count(); ++i) {
    ++held_->state.counts[static_cast<size_t>(lease.data_epoch() * shared_.rows + lease.first() + i)];
  }
  if (shared_.averages && lease.agrees()) {
    held_->agreed.push_back(held_->state);
    if (held_->agreed.size() > 2) held_->agreed.pop_front();
  }
  ++shared_.applied;
  job::v1::SessionRequest report;
  job::v1::Progress& progress = *report.mutable_progress();
  progress.set_generation(held_->generation);
  progress.set_step(lease.step());
  progress.set_loss_sum(0.5 * lease.count());
  progress.set_loss_samples(lease.count());
  progress.set_state_samples(held_->state.Samples());
  progress.set_compute_seconds(0.01 * slowness);
  Say(report);
  return true;
}

// A trainer pushes a step before it applies it.
void Member::KeepPush(const job::v1::StepLease& lease) {
  std::erase_if(pushes_, [&](const auto& at) { return at.first <= lease.saved_step(); });
  if (slot.role() != job::v1::MEMBER_ROLE_TRAINER || slot.stage() != 0 || shared_.kept_pushes == 0) return;
  Pushed& push = pushes_[lease.step()] = {lease};
  for (const job::v1::Peer& peer : peers_) {
    if (peer.slot().role() == job::v1::MEMBER_ROLE_SERVER) ++push.shards;
    if (peer.slot().role() == job::v1::MEMBER_ROLE_SERVER || peer.slot().stage() != 0) continue;
    if (peer.instance() == instance) push.trainer = push.trainers;
    ++push.trainers;
  }
  if (pushes_.size() > shared_.kept_pushes) pushes_.erase(pushes_.begin());
}

bool Member::WriteCheckpoint() {
  if (checkpoints_.empty() || !held_ || held_->state.step != checkpoints_.front().step()) return false;
  const job::v1::Checkpoint order = checkpoints_.front();
  checkpoints_.pop_front();
  job::v1::SessionRequest answer;
  answer.mutable_checkpointed()->set_step(order.step());
  const std::string name = fmt::format("{}-e{}", slot.member(), order.generation());
  answer.mutable_checkpointed()->add_files()->set_name(name);
  shared_.parts[order.folder() + "/" + name] = {order.generation(), held_->state};
  Say(answer);
  return true;
}

bool Member::CopyFromSources(State& out) {
  // Trainers of stage 1 and servers have weights; trainers of stage 0 copy only the counter.
  bool all_shards = true;
  bool found = false;
  for (const job::v1::Peer& peer : prepare_->sources()) {
    const Member& source = *shared_.by_instance.at(peer.instance());
    const Held* held = nullptr;
    if (source.held_ && source.held_->generation == prepare_->source_generation()) held = &*source.held_;
    if (source.old_ && source.old_->generation == prepare_->source_generation()) held = &*source.old_;
    const bool good = source.alive && held != nullptr && held->state.step == switch_->step();
    const bool server = peer.slot().role() == job::v1::MEMBER_ROLE_SERVER;
    if (server && !good) all_shards = false;
    const bool fits = slot.role() == job::v1::MEMBER_ROLE_SERVER ? server
                      : slot.stage() == 1                        ? !server && peer.slot().stage() == 1
                                                                 : true;
    if (fits && good) {
      out = held->state;
      found = true;
    }
  }
  return found && (slot.role() != job::v1::MEMBER_ROLE_SERVER || all_shards);
}

// From the checkpoint and what the trainers have kept: each step needs the pushes of all who pushed it.
void Member::RebuildRows(State& out) {
  const job::v1::Rebuild& rebuild = prepare_->rebuild();
  if (rebuild.after_step() > 0) out = shared_.checkpoints.at(prepare_->checkpoint()).state;
  if (out.step != rebuild.after_step())
    violation = slot.member() + ": the checkpoint to rebuild from is of another step";
  for (int64_t step = out.step + 1; step <= rebuild.to_step(); ++step) {
    const Pushed* any = nullptr;
    std::set<int> ranks;
    for (const job::v1::Peer& peer : prepare_->sources()) {
      const Member& trainer = *shared_.by_instance.at(peer.instance());
      const auto found = trainer.pushes().find(step);
      if (found == trainer.pushes().end()) continue;
      any = &found->second;
      ranks.insert(found->second.trainer);
    }
    if (any == nullptr || std::ssize(ranks) != any->trainers) {
      violation = fmt::format("{}: the rows of step {} cannot be rebuilt", slot.member(), step);
      return;
    }
    out.step = step;
    for (int i = 0; i < any->lease.count(); ++i) {
      ++out.counts[static_cast<size_t>(any->lease.data_epoch() * shared_.rows + any->lease.first() + i)];
    }
  }
  ++shared_.rebuilt;
}

bool Member::IsRebuilt() const {
  const auto& lost = prepare_->rebuild().shards();
  return slot.role() == job::v1::MEMBER_ROLE_SERVER && std::ranges::find(lost, slot.index()) != lost.end();
}

bool Member::IsPeer() const {
  return std::ranges::any_of(prepare_->peers(), [&](const auto& peer) { return peer.instance() == instance; });
}

bool Member::Rebuild(State& out) {
  out = State();
  out.counts.assign(static_cast<size_t>(shared_.rows * shared_.epochs), 0);
  if (prepare_->origin() == job::v1::STATE_ORIGIN_INITIAL) return true;
  if (prepare_->origin() == job::v1::STATE_ORIGIN_CHECKPOINT) {
    out = shared_.checkpoints.at(prepare_->checkpoint()).state;
    return true;
  }
  if (IsRebuilt()) {
    RebuildRows(out);
    return true;
  }
  if (held_ && held_->generation == prepare_->source_generation()) {
    while (held_->state.step > switch_->step() && !held_->undo.empty() && !shared_.averages) {  // roll back
      held_->state = held_->undo.back();
      held_->undo.pop_back();
    }
    if (shared_.averages && held_->state.step > switch_->step()) {
      std::erase_if(held_->agreed, [&](const State& state) { return state.step > switch_->step(); });
      if (!held_->agreed.empty()) held_->state = held_->agreed.back();
    }
    if (held_->state.step != switch_->step()) {
      violation = fmt::format("{}: at step {}, asked for {}", slot.member(), held_->state.step, switch_->step());
    }
    out = held_->state;
    return true;
  }
  return CopyFromSources(out);
}

bool Member::FinishSwitch() {
  State state;
  if (!Rebuild(state)) return false;
  if (state.Samples() != switch_->state_samples())
    violation = slot.member() + ": another number of samples in the state";
  job::v1::SessionRequest answer;
  answer.mutable_ready()->set_generation(prepare_->generation());
  answer.mutable_ready()->set_step(state.step);
  answer.mutable_ready()->set_state_samples(state.Samples());
  const bool continues = prepare_->origin() == job::v1::STATE_ORIGIN_PEERS;
  std::erase_if(pushes_, [&](const auto& at) { return !continues || at.first > switch_->step(); });
  if (IsPeer()) {  // others keep the generation that they hold
    old_ = std::move(held_);
    old_peers_ = peers_;
    held_ = Held{prepare_->generation(), std::move(state), {}, {}};
    held_->agreed = {held_->state};
    peers_.assign(prepare_->peers().begin(), prepare_->peers().end());
  }
  drain_ = 0;
  leases_.clear();
  checkpoints_.clear();
  evaluate_.reset();
  prepare_.reset();
  switch_.reset();
  warmed_ = false;
  Say(answer);
  return true;
}

}  // namespace medley::worker::sim
