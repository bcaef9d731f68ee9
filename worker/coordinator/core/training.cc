#include "worker/coordinator/core/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "common/base/status.h"
#include "common/model/convert.h"
#include "common/model/placement.h"
#include "worker/coordinator/core/row_moves.h"
#include "worker/coordinator/core/state.h"

namespace medley::worker::training {
namespace {

constexpr double kLeastWaited = 0.001;  // seconds, in a line of steps.jsonl

bool HoldLeases(const CoreState& view) {
  const bool keeps = exported_model::IsKeeping(view) && exported_model::Candidate(view) != nullptr;
  const std::optional<GenerationInfo>& next = view.generations.next;
  return view.ending.suspending || view.hand_over.successor || view.evaluation.pending || keeps ||
         row_moves::HoldsLeases(view) ||
         (next && (next->switching || (!view.checkpoints.pending && generations::AllWarmed(*next))));
}

// A pipeline keeps lag + 1 steps open, and must not run dry before new leases arrive.
int64_t LeaseAhead(const CoreState& view) {
  const int lag = view.generations.active->lag;
  return std::max<int64_t>(view.options.lease_ahead, lag > 1 ? 2 * (lag + 1) : 1);
}

// Lets the members complete the steps that an asynchronous schedule keeps open, before leases end for a while.
void DrainLeased(TrainingState& own, const GenerationInfo& active, Effects& out) {
  const int64_t leased = own.ledger->leased();
  if (active.lag == 1 || leased == own.ledger->committed() || own.drain == leased) return;
  own.drain = leased;
  job::v1::SessionResponse message;
  message.mutable_drain()->set_generation(active.generation);
  message.mutable_drain()->set_step(leased);
  for (const auto& [name, member] : active.members) out.Send(member.peer, message);
}

job::v1::StepLease LeaseStep(TrainingState& own, const CoreState& view, bool must_agree) {
  const StepRange range = own.ledger->Lease();
  job::v1::StepLease step;
  step.set_step(range.step);
  step.set_data_epoch(range.data_epoch);
  step.set_first(range.first);
  step.set_count(range.count);
  if (!view.checkpoints.last_is_damaged) step.set_saved_step(view.checkpoints.last_step);
  if (!view.generations.active->averages) return step;
  step.set_agrees(own.agreements.Next(must_agree || own.ledger->AllLeased() ||
                                      view.evaluation.curve.IsDue(*own.ledger, range.step)));
  if (step.agrees()) own.agreed.insert(range.step);
  return step;
}

Request CheckState(const CoreState& view, const std::string& member, const job::v1::Progress& progress) {
  const int64_t step = progress.step();
  if (!std::isfinite(progress.loss_sum())) return FailRequest{fmt::format("diverged at step {}", step)};
  const int64_t samples = view.training.ledger->SamplesAt(step);
  if (progress.state_samples() == 0 || progress.state_samples() == samples) return {};
  return FailRequest{fmt::format("{} counts {} samples at step {}, the ledger counts {}", member,
                                 progress.state_samples(), step, samples)};
}

}  // namespace

bool AllLeased(const CoreState& view) {
  const Ledger& ledger = *view.training.ledger;
  return ledger.AllLeased() || view.evaluation.curve.StopsAt(ledger.committed());
}

bool AllCommitted(const CoreState& view) {
  const Ledger& ledger = *view.training.ledger;
  return ledger.AllCommitted() || view.evaluation.curve.StopsAt(ledger.committed());
}

bool IsSettled(const CoreState& view) {
  const Ledger& ledger = *view.training.ledger;
  return !view.generations.active->averages || ledger.leased() == ledger.committed() ||
         view.training.agreed.contains(ledger.leased());
}

Request CheckDeadline(const CoreState& view, base::SteadyTime now) {
  const Ledger& ledger = *view.training.ledger;
  if (ledger.leased() <= ledger.committed() || now - view.training.committed_at <= view.options.stall_timeout)
    return {};
  const std::string why =
      fmt::format("no step was committed for {:.0f} s", base::ToSeconds(view.options.stall_timeout));
  return HaltRequest{{job::v1::SWITCH_CAUSE_TIMEOUT, why, ""}};
}

void Restore(TrainingState& own, const job::v1::LedgerRecord& record) {
  if (record.rows() <= 0) return;
  if (auto ledger = Ledger::FromRecord(record); ledger.ok()) own.ledger = *ledger;
}

Request CheckRows(TrainingState& own, const CoreState& view) {
  const GenerationInfo& next = *view.generations.next;
  const std::optional<CheckpointPosition>& position = view.restoring.position;
  const bool restores = position && next.origin == job::v1::STATE_ORIGIN_CHECKPOINT;
  const int last = next.plan.stages_size() - 1;
  std::string first_name;
  int64_t rows = own.ledger ? own.ledger->rows() : -1;
  if (restores) rows = position->ledger.rows();
  for (const job::v1::Peer& peer : next.peers) {
    if (peer.slot().role() != job::v1::MEMBER_ROLE_TRAINER) continue;
    const std::string& name = peer.slot().member();
    const int64_t read = next.members.at(name).rows;
    const bool inner = peer.slot().stage() != 0 && peer.slot().stage() != last;
    if (inner && read == 0) continue;
    if (read <= 0) return RefuseRequest{name, "the training data has no rows"};
    if (rows >= 0 && read != rows) {
      const std::string other = first_name.empty() ? "earlier trainers read" : first_name + " read";
      return RefuseRequest{
          name, fmt::format("the training data differs: this member read {} rows, {} {}", read, other, rows)};
    }
    rows = read;
    first_name = name;
  }
  if (own.ledger) return {};
  auto ledger = restores ? Ledger::FromRecord(position->ledger)
                         : Ledger::Create(rows, view.options.epochs, view.options.batch_size);
  if (!ledger.ok()) return FailRequest{std::string(ledger.status().message())};
  own.ledger = *std::move(ledger);
  return {};
}

void Begin(TrainingState& own, const CoreState& view, int64_t step, base::SteadyTime now) {
  const GenerationInfo& active = *view.generations.active;
  own.reported.clear();
  for (const auto& [name, member] : active.members) own.reported[name] = step;
  own.max_applied = active.restored_step > 0 ? own.ledger->committed() : step;
  own.losses.clear();
  own.committed_at = now;
  own.applied = step;
  own.agreed_at = now;
  own.agreed.clear();
  own.agreements = Agreements();
  if (!active.averages) return;
  const absl::StatusOr<model::ExecutionPlan> plan = model::FromProto(active.plan);
  MEDLEY_CHECK(plan.ok(), "a plan in force was checked when it was applied");
  for (const model::Sync& sync : model::SyncsOf(*plan)) {
    if (sync.kind == model::SyncKind::kAllreduce) own.agreements = Agreements(sync);
  }
}

// Sets the ledger back (or forward, after a restore) and records the rollback in steps.jsonl.
void SetBack(TrainingState& own, int64_t step, int64_t generation, Effects& out) {
  for (int64_t s = own.ledger->committed() + 1; s <= step; ++s) {
    constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
    out.Add(StepCommand{
        .range = own.ledger->RangeOf(s), .generation = generation, .loss = kUnknown, .agreed = own.agreed.contains(s)});
  }
  const absl::Status reset = own.ledger->ResetTo(step);
  MEDLEY_CHECK(reset.ok(), std::string(reset.message()));
  out.Add(RollbackCommand{step, generation});
  own.losses.clear();
  own.drain = 0;
  own.agreed.clear();
  own.applied = step;
}

void SawApplied(TrainingState& own, int64_t step) { own.max_applied = std::max(own.max_applied, step); }

void ResetPause(TrainingState& own, base::SteadyTime now) { own.committed_at = now; }

Progressed OnProgress(TrainingState& own, const CoreState& view, const std::string& member,
                      const job::v1::Progress& progress, base::SteadyTime now) {
  const GenerationsState& generations = view.generations;
  if (generations.mode != Mode::kTraining || progress.generation() != generations.active->generation) return {};
  const auto found = generations.active->members.find(member);
  const auto at = own.reported.find(member);
  if (found == generations.active->members.end() || at == own.reported.end()) return {};
  const int64_t step = progress.step();
  if (step != at->second + 1 || step > own.ledger->leased()) {
    const std::string why = fmt::format("{} reported step {} out of order, after step {}", member, step, at->second);
    return {.request = HaltRequest{{job::v1::SWITCH_CAUSE_MEMBER_FAULT, why, member}}};
  }
  if (Request wrong = CheckState(view, member, progress); !IsNothing(wrong)) return {.request = std::move(wrong)};
  at->second = step;
  if (progress.loss_samples() > 0) {
    auto& [sum, samples] = own.losses[step];
    sum += progress.loss_sum();
    samples += progress.loss_samples();
  }
  Progressed progressed;
  if (found->second.peer.slot().role() == job::v1::MEMBER_ROLE_TRAINER) {
    own.agreements.Add(member, step, progress.compute_seconds(), progress.comm_seconds(), own.agreed.contains(step));
    progressed.trainer = &found->second;
    own.data_seconds += std::max(0.0, progress.data_seconds());
    own.checkpoint_seconds += std::max(0.0, progress.checkpoint_seconds());
  }
  int64_t slowest = step;
  for (const auto& [name, applied] : own.reported) slowest = std::min(slowest, applied);
  SawApplied(own, view.options.is_program ? slowest : step);  // units of a program that follow report what is leased
  if (slowest == own.applied) return progressed;
  own.applied = slowest;
  own.agreements.Reported(slowest);
  own.committed_at = now;
  // Replicas that differ can return only to a step after which they agreed.
  const auto after = own.agreed.upper_bound(slowest);
  if (!generations.active->averages) progressed.commit_to = slowest;
  if (generations.active->averages && after != own.agreed.begin()) progressed.commit_to = *std::prev(after);
  return progressed;
}

StepResult CommitStep(TrainingState& own, const CoreState& view, int64_t step, base::WallTime now, Effects& out) {
  // Less than that waits for a later line, so that most lines are short.
  const auto take = [](double& seconds) { return seconds < kLeastWaited ? 0 : std::exchange(seconds, 0); };
  const int64_t generation = view.generations.active->generation;
  StepResult result{own.ledger->RangeOf(step), std::nullopt};
  double loss = std::numeric_limits<double>::quiet_NaN();
  if (const auto found = own.losses.find(step); found != own.losses.end()) {
    result.loss = found->second;
    loss = found->second.first / static_cast<double>(found->second.second);
    own.losses.erase(found);
  }
  out.Add(StepCommand{.range = result.range,
                      .generation = generation,
                      .loss = loss,
                      .agreed = own.agreed.erase(step) > 0,
                      .at = now,
                      .data_seconds = take(own.data_seconds),
                      .checkpoint_seconds = take(own.checkpoint_seconds)});
  if (step == own.drain) out.Add(DrainCommand{step, generation});
  return result;
}

void Commit(TrainingState& own, int64_t step, base::SteadyTime now) {
  const absl::Status committed = own.ledger->Commit(step);
  MEDLEY_CHECK(committed.ok(), std::string(committed.message()));
  own.committed_at = now;
}

void LeaseSteps(TrainingState& own, const CoreState& view, bool even_if_none, base::SteadyTime now, Effects& out) {
  const GenerationInfo& active = *view.generations.active;
  const LearningCurve& curve = view.evaluation.curve;
  Ledger& ledger = *own.ledger;
  const int64_t ahead = LeaseAhead(view);
  const int64_t open = ledger.leased() - own.applied;
  const bool pause = HoldLeases(view) || AllLeased(view) || curve.IsDue(ledger, ledger.leased());
  const bool draining = own.drain > ledger.committed();  // to the end, so that steps.jsonl says it
  // No more work than that of a checkpoint interval is at risk, whatever the mode says.
  const bool late = own.agreed.empty() && now - own.agreed_at >= view.options.checkpoint_interval;
  // By one more step, which agrees.
  const bool settle = (pause || view.checkpoints.due || late) && !IsSettled(view);
  const bool hold = (pause && !settle) || draining || open > ahead / 2;
  if (pause) DrainLeased(own, active, out);
  if (hold && !even_if_none) return;
  job::v1::SessionResponse message;
  job::v1::Lease& lease = *message.mutable_lease();
  lease.set_generation(active.generation);
  while (!hold && !ledger.AllLeased() && ledger.leased() - own.applied < ahead &&
         !curve.IsDue(ledger, ledger.leased())) {
    *lease.add_steps() = LeaseStep(own, view, settle);
    if (lease.steps().rbegin()->agrees()) own.agreed_at = now;
    if (settle) break;
  }
  if (lease.steps().empty() && !even_if_none) return;
  if (open == 0) own.committed_at = std::max(own.committed_at, now);
  for (const auto& [name, member] : active.members) out.Send(member.peer, message);
}

}  // namespace medley::worker::training
