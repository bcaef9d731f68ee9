// CoordinatorCore: the observation and the journal.
#include <algorithm>
#include <chrono>

#include "worker/coordinator/core/core.h"

namespace medley::worker {
namespace {

constexpr size_t kShownEvaluations = 32;

}  // namespace

job::v1::JobPhase CoordinatorCore::Phase() const {
  if (over()) return state_.ending.outcome;
  if (state_.generations.mode == Mode::kHalting || state_.generations.mode == Mode::kHalted)
    return job::v1::JOB_PHASE_RECOVERING;
  if (state_.generations.mode == Mode::kIdle)
    return state_.generations.from > 0 ? job::v1::JOB_PHASE_RECOVERING : job::v1::JOB_PHASE_WAITING;
  if (state_.evaluation.pending || (state_.generations.next && state_.generations.next->restored_step > 0))
    return job::v1::JOB_PHASE_EVALUATING;
  if (state_.generations.next)
    return state_.generations.next->switching ? job::v1::JOB_PHASE_SWITCHING : job::v1::JOB_PHASE_PREPARING;
  return job::v1::JOB_PHASE_TRAINING;
}

std::vector<std::string> CoordinatorCore::MissingMembers() const {
  if (over() || !state_.plans.desired) return {};
  std::vector<std::string> missing = Fit(*state_.plans.desired, Use::kStaying).missing;
  if (state_.generations.active &&
      state_.generations.active->request.plan().generation() != state_.plans.desired->plan().generation()) {
    for (std::string& name : Fit(state_.generations.active->request, Use::kStaying).missing) {
      if (std::find(missing.begin(), missing.end(), name) == missing.end()) missing.push_back(std::move(name));
    }
  }
  return missing;
}

job::v1::Observation CoordinatorCore::Observe(Instant now) const {
  job::v1::Observation out;
  out.set_phase(Phase());
  out.set_generation(over() ? state_.ending.final_generation : active_generation());
  out.set_plan_generation(over()                      ? state_.ending.final_plan
                          : state_.generations.active ? state_.generations.active->request.plan().generation()
                                                      : 0);
  if (state_.generations.next) {
    out.set_next_generation(state_.generations.next->generation);
  } else if (state_.generations.active &&
             state_.generations.active->request.plan().generation() != state_.plans.desired->plan().generation()) {
    out.set_next_generation(
        std::max(state_.generations.last + 1,
                 state_.plans.desired->plan().generation()));  // accepted, preparation has not begun
  }
  if (state_.training.ledger) {
    out.set_step(state_.training.ledger->committed());
    out.set_samples_done(state_.training.ledger->SamplesAt(state_.training.ledger->committed()));
    out.set_samples_total(state_.training.ledger->total_samples());
    const int64_t step = state_.training.ledger->committed() + (over() ? 0 : 1);
    out.set_epoch(state_.training.ledger->RangeOf(std::clamp<int64_t>(step, 1, state_.training.ledger->total_steps()))
                      .data_epoch +
                  1);
    out.set_epochs(state_.training.ledger->epochs());
  }
  if (state_.generations.mode == Mode::kTraining) out.set_throughput(state_.meters.throughput.Rate(now.steady));
  if (state_.generations.active && state_.generations.active->averages) {
    out.mutable_agreement()->set_fraction(state_.training.agreements.fraction());
    out.mutable_agreement()->set_ratio(state_.training.agreements.ratio());
  }
  if (!state_.meters.loss.empty()) out.set_loss(state_.meters.loss.value());
  for (const auto& [name, value] : state_.evaluation.metrics) (*out.mutable_metrics())[name] = value;
  const auto& curve = state_.evaluation.curve.records();
  for (size_t i = curve.size() > kShownEvaluations ? curve.size() - kShownEvaluations : 0; i < curve.size(); ++i) {
    *out.add_evaluations() = curve[i];
  }
  if (state_.best.kept) *out.mutable_best() = state_.best.kept->model();
  if (state_.best.exported) *out.mutable_exported() = *state_.best.exported;
  if (state_.generations.active)
    state_.meters.stage_times.Fill(state_.generations.active->plan, state_.options.batch_size, out);
  out.set_usd_spent(state_.meters.cost.usd());
  out.set_usd_first_plan(state_.meters.cost.usd_first());
  for (const job::v1::SwitchRecord& record : state_.generations.switches) *out.add_switches() = record;
  const std::vector<std::string> missing = MissingMembers();
  for (const std::string& name : missing) out.add_missing_members(name);
  const bool complete = state_.ending.outcome == job::v1::JOB_PHASE_COMPLETE;
  out.set_stopped_early(complete && state_.training.ledger && !state_.training.ledger->AllCommitted());
  if (over()) {
    out.set_message(state_.ending.message);
  } else if (!state_.plans.desired) {
    out.set_message("waiting for a plan");
  } else if (state_.generations.mode != Mode::kTraining) {
    const std::string waits = missing.empty() || state_.generations.next ? "" : "waiting for " + missing.front();
    const std::string& cause = state_.recovery.cause.text;
    out.set_message(cause.empty() || waits.empty() ? cause + waits : cause + "; " + waits);
  }
  out.set_restarts(state_.recovery.restarts);
  const int64_t nanos = std::chrono::duration_cast<base::nanoseconds>(now.wall.time_since_epoch()).count();
  out.mutable_at()->set_seconds(nanos / 1'000'000'000);
  out.mutable_at()->set_nanos(static_cast<int32_t>(nanos % 1'000'000'000));
  out.set_bad_rows(state_.data.bad_rows);
  FillLeftOut(out);
  if (state_.checkpoints.failure) *out.mutable_checkpoint_failure() = *state_.checkpoints.failure;
  out.set_checkpoint_failures(state_.checkpoints.failures);
  out.set_last_checkpoint_step(state_.checkpoints.last_step);
  out.set_retryable(state_.ending.retryable);
  out.set_leader_term(state_.plans.leader_term);
  if (state_.plans.refused) *out.mutable_refused() = *state_.plans.refused;
  return out;
}

void CoordinatorCore::Journal(Instant now) {
  journaled_at_ = now.steady;
  commands_.push_back(JournalCommand{DurableState(now)});
}

job::v1::CoordinatorState CoordinatorCore::DurableState(Instant now) const {
  job::v1::CoordinatorState state;
  state.set_last_generation(state_.generations.last);
  state.set_leader_term(state_.plans.leader_term);
  state.set_job_digest(state_.options.job_digest);
  if (state_.plans.desired) *state.mutable_desired() = *state_.plans.desired;
  if (state_.plans.first) *state.mutable_first_plan() = *state_.plans.first;
  if (state_.generations.active) {
    *state.mutable_active_plan() = state_.generations.active->request;
    state.mutable_active()->set_generation(state_.generations.active->generation);
    *state.mutable_active()->mutable_plan() = state_.generations.active->plan;
    for (const job::v1::Peer& peer : state_.generations.active->peers) *state.mutable_active()->add_peers() = peer;
    state.mutable_active()->set_start_step(state_.generations.active->step);
    state.mutable_active()->set_lag(state_.generations.active->lag);
    state.mutable_active()->set_averages(state_.generations.active->averages);
  }
  if (state_.hand_over.handed_over) *state.mutable_handed_over() = Boundary(now);
  state.set_from_generation(state_.generations.from);
  if (state_.training.ledger) *state.mutable_ledger() = state_.training.ledger->ToRecord();
  state.set_last_checkpoint_step(state_.checkpoints.last_step);
  state.set_last_checkpoint_folder(state_.checkpoints.last_folder);
  if (state_.best.kept) *state.mutable_best() = *state_.best.kept;
  if (state_.evaluation.tested) *state.mutable_test() = *state_.evaluation.tested;
  if (state_.best.exported) *state.mutable_exported() = *state_.best.exported;
  state.set_restarts(state_.recovery.restarts);
  state.set_usd_spent(state_.meters.cost.usd());
  state.set_usd_first_plan(state_.meters.cost.usd_first());
  state.set_first_plan_throughput(state_.meters.cost.first_throughput());
  state.set_paid_samples(state_.meters.cost.paid_samples());
  state.set_bad_rows(state_.data.bad_rows);
  *state.mutable_recovery() = state_.recovery.budget.ToRecord();
  state.set_train_digest(state_.data.train_digest);
  state.set_test_digest(state_.data.test_digest);
  state.set_validation_digest(state_.data.validation_digest);
  if (state_.checkpoints.failure) *state.mutable_checkpoint_failure() = *state_.checkpoints.failure;
  state.set_checkpoint_failures(state_.checkpoints.failures);
  for (const auto& [name, standby] : state_.standing_by.standbys.all()) *state.add_standbys() = standby.record;
  for (const job::v1::SwitchRecord& record : state_.generations.switches) *state.add_switches() = record;
  state.set_outcome(state_.ending.outcome);
  state.set_message(state_.ending.message);
  state.set_retryable(state_.ending.retryable);
  for (const job::v1::EvaluationRecord& record : state_.evaluation.curve.records()) *state.add_evaluations() = record;
  for (const auto& [name, value] : state_.evaluation.metrics) (*state.mutable_metrics())[name] = value;
  return state;
}

void CoordinatorCore::Hold(Instant now) {
  std::map<std::string, int> units;
  for (const auto& [name, member] : state_.members.all) ++units[member.hello.pool()];
  state_.meters.cost.Hold(now.steady, units);
}

}  // namespace medley::worker
