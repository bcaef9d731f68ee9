#include "worker/coordinator/core/observe.h"

#include <algorithm>
#include <chrono>

#include "worker/coordinator/core/state.h"

namespace medley::worker {
namespace {

constexpr size_t kShownEvaluations = 32;

job::v1::JobPhase Phase(const CoreState& view) {
  if (view.ending.over()) return view.ending.outcome;
  if (view.generations.mode == Mode::kHalting || view.generations.mode == Mode::kHalted)
    return job::v1::JOB_PHASE_RECOVERING;
  if (view.generations.mode == Mode::kIdle)
    return view.generations.from > 0 ? job::v1::JOB_PHASE_RECOVERING : job::v1::JOB_PHASE_WAITING;
  if (view.evaluation.pending || (view.generations.next && view.generations.next->restored_step > 0))
    return job::v1::JOB_PHASE_EVALUATING;
  if (view.generations.next)
    return view.generations.next->switching ? job::v1::JOB_PHASE_SWITCHING : job::v1::JOB_PHASE_PREPARING;
  return job::v1::JOB_PHASE_TRAINING;
}

}  // namespace

job::v1::Observation Observe(const CoreState& view, Instant now) {
  job::v1::Observation out;
  out.set_phase(Phase(view));
  out.set_generation(view.ending.over() ? view.ending.final_generation : generations::ActiveOf(view.generations));
  out.set_plan_generation(view.ending.over()        ? view.ending.final_plan
                          : view.generations.active ? view.generations.active->request.plan().generation()
                                                    : 0);
  if (view.generations.next) {
    out.set_next_generation(view.generations.next->generation);
  } else if (view.generations.active &&
             view.generations.active->request.plan().generation() != view.plans.desired->plan().generation()) {
    out.set_next_generation(std::max(view.generations.last + 1,
                                     view.plans.desired->plan().generation()));  // accepted, preparation has not begun
  }
  if (view.training.ledger) {
    out.set_step(view.training.ledger->committed());
    out.set_samples_done(view.training.ledger->SamplesAt(view.training.ledger->committed()));
    out.set_samples_total(view.training.ledger->total_samples());
    const int64_t step = view.training.ledger->committed() + (view.ending.over() ? 0 : 1);
    out.set_epoch(
        view.training.ledger->RangeOf(std::clamp<int64_t>(step, 1, view.training.ledger->total_steps())).data_epoch +
        1);
    out.set_epochs(view.training.ledger->epochs());
  }
  if (view.generations.mode == Mode::kTraining) out.set_throughput(view.meters.throughput.Rate(now.steady));
  if (view.generations.active && view.generations.active->averages) {
    out.mutable_agreement()->set_fraction(view.training.agreements.fraction());
    out.mutable_agreement()->set_ratio(view.training.agreements.ratio());
  }
  if (!view.meters.loss.empty()) out.set_loss(view.meters.loss.value());
  for (const auto& [name, value] : view.evaluation.metrics) (*out.mutable_metrics())[name] = value;
  const auto& curve = view.evaluation.curve.records();
  for (size_t i = curve.size() > kShownEvaluations ? curve.size() - kShownEvaluations : 0; i < curve.size(); ++i) {
    *out.add_evaluations() = curve[i];
  }
  if (view.best.kept) *out.mutable_best() = view.best.kept->model();
  if (view.best.exported) *out.mutable_exported() = *view.best.exported;
  if (view.generations.active)
    view.meters.stage_times.Fill(view.generations.active->plan, view.options.batch_size, out);
  out.set_data_wait_seconds(view.meters.stage_times.data_wait_seconds());
  if (!view.meters.device_tables.empty()) *out.mutable_device_tables() = view.meters.device_tables.Sum();
  if (!view.meters.row_tiers.empty()) *out.mutable_row_tiers() = view.meters.row_tiers.Sum();
  if (!view.meters.activity.account().id.empty()) view.meters.activity.Fill(now.wall, false, *out.mutable_units());
  out.set_usd_spent(view.meters.cost.usd());
  out.set_usd_first_plan(view.meters.cost.usd_first());
  for (const job::v1::SwitchRecord& record : view.switches.complete) *out.add_switches() = record;
  const std::vector<std::string> missing = choices::MissingMembers(view);
  for (const std::string& name : missing) out.add_missing_members(name);
  const bool complete = view.ending.outcome == job::v1::JOB_PHASE_COMPLETE;
  out.set_stopped_early(complete && view.training.ledger && !view.training.ledger->AllCommitted());
  if (view.ending.over()) {
    out.set_message(view.ending.message);
  } else if (!view.plans.desired) {
    out.set_message("waiting for a plan");
  } else if (view.generations.mode != Mode::kTraining) {
    const std::string waits = missing.empty() || view.generations.next ? "" : "waiting for " + missing.front();
    const std::string& cause = view.recovery.cause.text;
    out.set_message(cause.empty() || waits.empty() ? cause + waits : cause + "; " + waits);
  }
  out.set_restarts(view.recovery.restarts);
  const int64_t nanos = std::chrono::duration_cast<base::nanoseconds>(now.wall.time_since_epoch()).count();
  out.mutable_at()->set_seconds(nanos / 1'000'000'000);
  out.mutable_at()->set_nanos(static_cast<int32_t>(nanos % 1'000'000'000));
  out.set_bad_rows(view.data.bad_rows);
  standing_by::FillLeftOut(view, out);
  if (view.checkpoints.failure) *out.mutable_checkpoint_failure() = *view.checkpoints.failure;
  out.set_checkpoint_failures(view.checkpoints.failures);
  out.set_last_checkpoint_step(view.checkpoints.last_step);
  out.set_retryable(view.ending.retryable);
  out.set_leader_term(view.plans.leader_term);
  if (view.plans.refused) *out.mutable_refused() = *view.plans.refused;
  return out;
}

job::v1::CoordinatorState DurableState(const CoreState& view, Instant now) {
  job::v1::CoordinatorState state;
  state.set_last_generation(view.generations.last);
  state.set_leader_term(view.plans.leader_term);
  state.set_job_digest(view.options.job_digest);
  if (view.plans.desired) *state.mutable_desired() = *view.plans.desired;
  if (view.plans.first) *state.mutable_first_plan() = *view.plans.first;
  if (view.generations.active) {
    *state.mutable_active_plan() = view.generations.active->request;
    state.mutable_active()->set_generation(view.generations.active->generation);
    *state.mutable_active()->mutable_plan() = view.generations.active->plan;
    for (const job::v1::Peer& peer : view.generations.active->peers) *state.mutable_active()->add_peers() = peer;
    state.mutable_active()->set_start_step(view.generations.active->step);
    state.mutable_active()->set_lag(view.generations.active->lag);
    state.mutable_active()->set_averages(view.generations.active->averages);
  }
  if (view.hand_over.handed_over) *state.mutable_handed_over() = hand_over::Boundary(view, now);
  state.set_from_generation(view.generations.from);
  if (view.training.ledger) *state.mutable_ledger() = view.training.ledger->ToRecord();
  state.set_last_checkpoint_step(view.checkpoints.last_step);
  state.set_last_checkpoint_folder(view.checkpoints.last_folder);
  if (view.best.kept) *state.mutable_best() = *view.best.kept;
  if (view.evaluation.tested) *state.mutable_test() = *view.evaluation.tested;
  if (view.best.exported) *state.mutable_exported() = *view.best.exported;
  state.set_restarts(view.recovery.restarts);
  if (!view.meters.activity.account().id.empty()) view.meters.activity.Fill(now.wall, true, *state.mutable_units());
  state.set_usd_spent(view.meters.cost.usd());
  state.set_usd_first_plan(view.meters.cost.usd_first());
  state.set_first_plan_throughput(view.meters.cost.first_throughput());
  state.set_paid_samples(view.meters.cost.paid_samples());
  state.set_bad_rows(view.data.bad_rows);
  *state.mutable_recovery() = view.recovery.budget.ToRecord();
  state.set_train_digest(view.data.train_digest);
  state.set_test_digest(view.data.test_digest);
  state.set_validation_digest(view.data.validation_digest);
  if (view.checkpoints.failure) *state.mutable_checkpoint_failure() = *view.checkpoints.failure;
  state.set_checkpoint_failures(view.checkpoints.failures);
  for (const auto& [name, standby] : view.standing_by.standbys.all()) *state.add_standbys() = standby.record;
  for (const job::v1::SwitchRecord& record : view.switches.complete) *state.add_switches() = record;
  // A coordinator that starts again ends the program, which may make no step until then.
  if (view.switches.open) *state.add_switches() = *view.switches.open;
  state.set_outcome(view.ending.outcome);
  state.set_message(view.ending.message);
  state.set_retryable(view.ending.retryable);
  for (const job::v1::EvaluationRecord& record : view.evaluation.curve.records()) *state.add_evaluations() = record;
  for (const auto& [name, value] : view.evaluation.metrics) (*state.mutable_metrics())[name] = value;
  return state;
}

}  // namespace medley::worker
