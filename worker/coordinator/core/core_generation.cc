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
  if (fit.covers || all || standbys_.all().empty()) return fit;
  RosterFit slow = FitWith(request, use, true);  // slow is better than not at all
  return slow.covers ? slow : fit;
}

RosterFit CoordinatorCore::FitWith(const job::v1::ApplyPlanRequest& request, Use use, bool standbys) const {
  RosterFit fit = FitPlan(request, [&](const std::string& name) -> const job::v1::Hello* {
    const auto found = members_.find(name);
    if (found == members_.end() || found->second.released) return nullptr;
    if (found->second.leaving && use != Use::kAll) return nullptr;
    if (use == Use::kHolders && (!active_ || !active_->members.contains(name))) return nullptr;
    if (!standbys && StandsBy(name)) return nullptr;
    return &found->second.hello;
  });
  if (!standbys) std::erase_if(fit.missing, [&](const std::string& name) { return StandsBy(name); });
  return fit;
}

void CoordinatorCore::StartGeneration(const job::v1::ApplyPlanRequest& request, RosterFit fit,
                                      job::v1::StateOrigin origin, Cause cause, Instant now) {
  last_generation_ = std::max(last_generation_ + 1, request.plan().generation());
  GenerationInfo& next = next_.emplace();
  next.generation = last_generation_;
  next.request = request;
  next.plan = std::move(fit.plan);
  next.plan.set_generation(last_generation_);
  next.peers = std::move(fit.peers);
  next.origin = origin;
  next.recovery = mode_ != Mode::kTraining && from_generation_ > 0;
  next.cause = std::move(cause);
  next.deadline = now.steady + options_.prepare_timeout;
  for (const job::v1::Peer& peer : next.peers) next.members[peer.slot().member()].peer = peer;
  if (origin == job::v1::STATE_ORIGIN_PEERS) {
    for (const auto& [name, holder] : active_->members) {
      if (next.members.contains(name)) continue;
      next.members[name] = {.peer = holder.peer, .is_peer = false};
    }
  }
  Journal(now);
  commands_.push_back(FenceCommand{active_ ? active_->generation : next.generation});
  Log(false,
      fmt::format("preparing generation {} with {} members: {}", next.generation, next.peers.size(), next.cause.text));
  SendPrepare(origin);
}

void CoordinatorCore::SendPrepare(job::v1::StateOrigin origin) {
  job::v1::SessionResponse message;
  job::v1::Prepare& prepare = *message.mutable_prepare();
  prepare.set_generation(next_->generation);
  *prepare.mutable_plan() = next_->plan;
  for (const job::v1::Peer& peer : next_->peers) *prepare.add_peers() = peer;
  prepare.set_origin(origin);
  if (origin == job::v1::STATE_ORIGIN_PEERS) {
    for (const auto& [name, holder] : active_->members) *prepare.add_sources() = holder.peer;
    prepare.set_source_generation(active_->generation);
  }
  if (origin == job::v1::STATE_ORIGIN_CHECKPOINT) prepare.set_checkpoint(restore_->folder);
  for (const auto& [name, member] : next_->members) Send(member.peer, message);
}

void CoordinatorCore::AbandonNext(const Cause& why, std::optional<RecoveryBudget::Weight> weight, Instant now) {
  const bool fault = weight == RecoveryBudget::Weight::kFault;
  Log(fault, fmt::format("abandoned generation {}: {}", next_->generation, why.text));
  Blame(why);
  found_ = false;
  if (weight) {
    budget_.Interrupted(*weight);
    const base::nanoseconds least = fault ? options_.retry_wait : base::nanoseconds(0);
    retry_at_ = now.steady + std::max(budget_.Pause(options_.retry_wait), least);
  }
  if (mode_ != Mode::kTraining && GiveUp(why, now)) return;
  // Halt brings members of the old generation back to it; Abandon makes the others drop the new one.
  if (next_->switching && active_) return BeginHalt(why, now, weight.has_value());
  job::v1::SessionResponse message;
  message.mutable_abandon()->set_generation(next_->generation);
  for (const auto& [name, member] : next_->members) {
    if (Connected(member.peer) != nullptr) Send(member.peer, message);
  }
  next_.reset();
  waiting_since_ = now.steady;
}

// A copy of the name: it may be that of a peer of next_, which ends here.
void CoordinatorCore::RefuseNext(std::string member, const std::string& message, Instant now) {
  if (!active_) return Fail(fmt::format("{}: {}", member, message), false, now);
  const int64_t plan = next_->request.plan().generation();
  const bool same_plan = plan == active_->request.plan().generation();
  const bool replacement = same_plan && !active_->members.contains(member);
  if (!same_plan) {
    refused_.emplace();
    refused_->set_generation(plan);
    refused_->set_member(member);
    refused_->set_message(message);
    if (desired_->plan().generation() == plan) desired_ = active_->request;
    Journal(now);
  }
  AbandonNext({job::v1::SWITCH_CAUSE_MEMBER_FAULT, fmt::format("{}: {}", member, message), member},
              RecoveryBudget::Weight::kFault, now);
  if (replacement) ReleaseWithError(member, message);  // the plan runs without it
}

// Its pod ends with an error, and a new pod takes its place.
void CoordinatorCore::ReleaseWithError(const std::string& member, const std::string& message) {
  const auto found = members_.find(member);
  if (found == members_.end()) return;
  found->second.released = true;
  job::v1::SessionResponse release;
  release.mutable_release()->set_exit_code(1);
  release.mutable_release()->set_reason(message);
  commands_.push_back(SendCommand{member, found->second.hello.instance(), std::move(release)});
}

void CoordinatorCore::OnWarmed(const std::string& member, const job::v1::Warmed& warmed, Instant now) {
  if (!next_ || warmed.generation() != next_->generation) return;
  const auto found = next_->members.find(member);
  if (found == next_->members.end()) return;
  found->second.warmed = true;
  found->second.rows = warmed.rows();
  found->second.data_digest = warmed.data_digest();
  found->second.program = warmed.program();
  next_->lag = std::clamp(warmed.lag(), next_->lag, kMaxLag);
  next_->averages = next_->averages || warmed.averages();
  bad_rows_ = std::max(bad_rows_, warmed.bad_rows());
  if (AllWarmed()) AdoptRows(now);
}

bool CoordinatorCore::AllWarmed() const {
  return std::all_of(next_->members.begin(), next_->members.end(), [](const auto& at) { return at.second.warmed; });
}

// All trainers must have compiled the plan to the same program: builds that differ would wait for messages that nobody
// sends. What most have is right. Returns false when next_ was given up.
bool CoordinatorCore::CheckPrograms(Instant now) {
  std::map<std::string, int> trainers;  // by program
  for (const auto& [name, member] : next_->members) {
    if (!member.program.empty()) ++trainers[member.program];
  }
  if (trainers.size() < 2) return true;
  const auto right = std::max_element(trainers.begin(), trainers.end(),
                                      [](const auto& a, const auto& b) { return a.second < b.second; });
  std::vector<std::pair<std::string, std::string>> wrong;  // member, sentence
  for (const auto& [name, member] : next_->members) {
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

// Checks that all trainers have read the same number of rows, and as many as before. Returns false when next_ was given
// up or the job has failed.
bool CoordinatorCore::AdoptRows(Instant now) {
  if (!CheckPrograms(now) || !CheckTrainData(now)) return false;
  const int last = next_->plan.stages_size() - 1;
  std::string first_name;
  int64_t rows = ledger_ ? ledger_->rows() : -1;
  if (restore_ && next_->origin == job::v1::STATE_ORIGIN_CHECKPOINT) rows = restore_->ledger.rows();
  for (const job::v1::Peer& peer : next_->peers) {
    if (peer.slot().role() != job::v1::MEMBER_ROLE_TRAINER) continue;
    const std::string& name = peer.slot().member();
    const int64_t read = next_->members.at(name).rows;
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
  if (ledger_) return true;
  auto ledger = Ledger::Create(rows, options_.epochs, options_.batch_size);
  if (restore_ && next_->origin == job::v1::STATE_ORIGIN_CHECKPOINT) ledger = Ledger::FromRecord(restore_->ledger);
  if (!ledger.ok()) {
    Fail(std::string(ledger.status().message()), false, now);
    return false;
  }
  ledger_ = *std::move(ledger);
  return true;
}

void CoordinatorCore::AdvanceNext(Instant now) {
  if (!next_->switching) {
    if (!AllWarmed()) return;
    if (mode_ == Mode::kTraining && (checkpoint_ || evaluation_ || ledger_->committed() != ledger_->leased())) return;
    if (next_->restored_step > 0) return SendSwitch(next_->restored_step, now);
    if (mode_ == Mode::kTraining) return SendSwitch(ledger_->committed(), now);
    if (mode_ == Mode::kHalted) return SendSwitch(halted_step_, now);
    const int64_t step = next_->origin == job::v1::STATE_ORIGIN_CHECKPOINT ? restore_->step : 0;
    SetLedger(step, next_->generation);
    return SendSwitch(step, now);
  }
  const auto ready = [](const auto& at) { return at.second.ready; };
  if (std::all_of(next_->members.begin(), next_->members.end(), ready)) PutInForce(now);
}

void CoordinatorCore::SendSwitch(int64_t step, Instant now) {
  next_->step = step;
  next_->switching = true;
  next_->deadline = now.steady + options_.switch_timeout;
  job::v1::SessionResponse message;
  message.mutable_switch_()->set_generation(next_->generation);
  message.mutable_switch_()->set_step(step);
  message.mutable_switch_()->set_state_samples(ledger_->SamplesAt(step));
  for (const auto& [name, member] : next_->members) Send(member.peer, message);
}

void CoordinatorCore::OnReady(const std::string& member, const job::v1::Ready& ready, Instant now) {
  if (!next_ || !next_->switching || ready.generation() != next_->generation) return;
  const auto found = next_->members.find(member);
  if (found == next_->members.end()) return;
  const int64_t samples = ledger_->SamplesAt(next_->step);
  if (ready.step() != next_->step || ready.state_samples() != samples) {
    return Fail(fmt::format("the state of {} is at step {} with {} samples, the ledger at step {} with {}", member,
                            ready.step(), ready.state_samples(), next_->step, samples),
                false, now);
  }
  found->second.ready = true;
}

void CoordinatorCore::PutInForce(Instant now) {
  RecordSwitch(now);
  active_ = std::move(next_);
  next_.reset();
  mode_ = Mode::kTraining;
  active_->switching = false;
  job::v1::SessionResponse release;
  release.mutable_release()->set_reason("the new generation has no place for this member");
  std::vector<Command> releases;
  for (auto at = active_->members.begin(); at != active_->members.end();) {
    GenerationMember& member = at->second;
    member.applied = active_->step;
    if (member.is_peer) {
      ++at;
      continue;
    }
    const auto found = members_.find(at->first);
    if (StandsBy(at->first) && !found->second.leaving) {
      at = active_->members.erase(at);
      continue;
    }
    standbys_.Remove(at->first, now.steady);
    if (found != members_.end()) found->second.released = true;
    releases.push_back(SendCommand{at->first, member.peer.instance(), release});
    at = active_->members.erase(at);
  }
  from_generation_ = active_->generation;
  max_applied_ = active_->restored_step > 0 ? ledger_->committed() : active_->step;
  found_ = false;
  restore_.reset();
  if (active_->restored_step > 0) restores_ = 0;
  restores_older_.clear();
  failed_restores_.clear();
  losses_.clear();
  throughput_.Reset(now.steady);
  stage_times_.Reset();
  cost_.Pause();
  committed_at_ = now.steady;
  BeginAgreements(active_->step, now);
  UpdateStandbys(now);
  BeginSlowMembers();
  Journal(now);
  commands_.push_back(FenceCommand{active_->generation});
  Log(false, fmt::format("generation {} {} step {}", active_->generation,
                         active_->restored_step > 0 ? "holds the exported model, of" : "trains from", active_->step));
  LeaseSteps(true, now);
  std::move(releases.begin(), releases.end(), std::back_inserter(commands_));
}

void CoordinatorCore::RecordSwitch(Instant now) {
  if (from_generation_ == 0 || next_->restored_step > 0) return;
  job::v1::SwitchRecord& record = switches_.emplace_back();
  record.set_from_generation(from_generation_);
  record.set_to_generation(next_->generation);
  record.set_reason(next_->cause.text);
  record.set_cause(next_->cause.kind);
  record.set_member(next_->cause.member);
  record.set_pause_seconds(base::ToSeconds(now.steady - committed_at_));
  record.set_at_step(next_->step);
  record.set_recovery(next_->recovery);
  record.set_lost_steps(std::max<int64_t>(0, max_applied_ - next_->step));
  SetTime(now.wall, record.mutable_at());
  if (switches_.size() > kMaxSwitches) switches_.erase(switches_.begin());
}

}  // namespace medley::worker
