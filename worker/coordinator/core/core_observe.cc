// CoordinatorCore: the observation and the journal.
#include <algorithm>
#include <chrono>

#include "worker/coordinator/core/core.h"

namespace medley::worker {
namespace {

constexpr size_t kShownEvaluations = 32;

}  // namespace

job::v1::JobPhase CoordinatorCore::Phase() const {
  if (over()) return outcome_;
  if (mode_ == Mode::kHalting || mode_ == Mode::kHalted) return job::v1::JOB_PHASE_RECOVERING;
  if (mode_ == Mode::kIdle) return from_generation_ > 0 ? job::v1::JOB_PHASE_RECOVERING : job::v1::JOB_PHASE_WAITING;
  if (evaluation_ || (next_ && next_->restored_step > 0)) return job::v1::JOB_PHASE_EVALUATING;
  if (next_) return next_->switching ? job::v1::JOB_PHASE_SWITCHING : job::v1::JOB_PHASE_PREPARING;
  return job::v1::JOB_PHASE_TRAINING;
}

std::vector<std::string> CoordinatorCore::MissingMembers() const {
  if (over() || !desired_) return {};
  std::vector<std::string> missing = Fit(*desired_, Use::kStaying).missing;
  if (active_ && active_->request.plan().generation() != desired_->plan().generation()) {
    for (std::string& name : Fit(active_->request, Use::kStaying).missing) {
      if (std::find(missing.begin(), missing.end(), name) == missing.end()) missing.push_back(std::move(name));
    }
  }
  return missing;
}

job::v1::Observation CoordinatorCore::Observe(Instant now) const {
  job::v1::Observation out;
  out.set_phase(Phase());
  out.set_generation(over() ? final_generation_ : active_generation());
  out.set_plan_generation(over() ? final_plan_ : active_ ? active_->request.plan().generation() : 0);
  if (next_) {
    out.set_next_generation(next_->generation);
  } else if (active_ && active_->request.plan().generation() != desired_->plan().generation()) {
    out.set_next_generation(
        std::max(last_generation_ + 1, desired_->plan().generation()));  // accepted, preparation has not begun
  }
  if (ledger_) {
    out.set_step(ledger_->committed());
    out.set_samples_done(ledger_->SamplesAt(ledger_->committed()));
    out.set_samples_total(ledger_->total_samples());
    const int64_t step = ledger_->committed() + (over() ? 0 : 1);
    out.set_epoch(ledger_->RangeOf(std::clamp<int64_t>(step, 1, ledger_->total_steps())).data_epoch + 1);
    out.set_epochs(ledger_->epochs());
  }
  if (mode_ == Mode::kTraining) out.set_throughput(throughput_.Rate(now.steady));
  if (active_ && active_->averages) {
    out.mutable_agreement()->set_fraction(agreements_.fraction());
    out.mutable_agreement()->set_ratio(agreements_.ratio());
  }
  if (!loss_.empty()) out.set_loss(loss_.value());
  for (const auto& [name, value] : metrics_) (*out.mutable_metrics())[name] = value;
  const auto& curve = curve_.records();
  for (size_t i = curve.size() > kShownEvaluations ? curve.size() - kShownEvaluations : 0; i < curve.size(); ++i) {
    *out.add_evaluations() = curve[i];
  }
  if (best_) *out.mutable_best() = best_->model();
  if (exported_) *out.mutable_exported() = *exported_;
  if (active_) stage_times_.Fill(active_->plan, options_.batch_size, out);
  out.set_usd_spent(cost_.usd());
  out.set_usd_first_plan(cost_.usd_first());
  for (const job::v1::SwitchRecord& record : switches_) *out.add_switches() = record;
  const std::vector<std::string> missing = MissingMembers();
  for (const std::string& name : missing) out.add_missing_members(name);
  const bool complete = outcome_ == job::v1::JOB_PHASE_COMPLETE;
  out.set_stopped_early(complete && ledger_ && !ledger_->AllCommitted());
  if (over()) {
    out.set_message(message_);
  } else if (!desired_) {
    out.set_message("waiting for a plan");
  } else if (mode_ != Mode::kTraining) {
    const std::string waits = missing.empty() || next_ ? "" : "waiting for " + missing.front();
    const std::string& cause = last_interruption_.text;
    out.set_message(cause.empty() || waits.empty() ? cause + waits : cause + "; " + waits);
  }
  out.set_restarts(restarts_);
  const int64_t nanos = std::chrono::duration_cast<base::nanoseconds>(now.wall.time_since_epoch()).count();
  out.mutable_at()->set_seconds(nanos / 1'000'000'000);
  out.mutable_at()->set_nanos(static_cast<int32_t>(nanos % 1'000'000'000));
  out.set_bad_rows(bad_rows_);
  FillLeftOut(out);
  if (checkpoint_failure_) *out.mutable_checkpoint_failure() = *checkpoint_failure_;
  out.set_checkpoint_failures(checkpoint_failures_);
  out.set_last_checkpoint_step(last_checkpoint_);
  out.set_retryable(retryable_);
  out.set_leader_term(leader_term_);
  if (refused_) *out.mutable_refused() = *refused_;
  return out;
}

void CoordinatorCore::Journal(Instant now) {
  journaled_at_ = now.steady;
  commands_.push_back(JournalCommand{DurableState(now)});
}

job::v1::CoordinatorState CoordinatorCore::DurableState(Instant now) const {
  job::v1::CoordinatorState state;
  state.set_last_generation(last_generation_);
  state.set_leader_term(leader_term_);
  state.set_job_digest(options_.job_digest);
  if (desired_) *state.mutable_desired() = *desired_;
  if (first_plan_) *state.mutable_first_plan() = *first_plan_;
  if (active_) {
    *state.mutable_active_plan() = active_->request;
    state.mutable_active()->set_generation(active_->generation);
    *state.mutable_active()->mutable_plan() = active_->plan;
    for (const job::v1::Peer& peer : active_->peers) *state.mutable_active()->add_peers() = peer;
    state.mutable_active()->set_start_step(active_->step);
    state.mutable_active()->set_lag(active_->lag);
    state.mutable_active()->set_averages(active_->averages);
  }
  if (handed_over_) *state.mutable_handed_over() = Boundary(now);
  state.set_from_generation(from_generation_);
  if (ledger_) *state.mutable_ledger() = ledger_->ToRecord();
  state.set_last_checkpoint_step(last_checkpoint_);
  state.set_last_checkpoint_folder(last_folder_);
  if (best_) *state.mutable_best() = *best_;
  if (tested_) *state.mutable_test() = *tested_;
  if (exported_) *state.mutable_exported() = *exported_;
  state.set_restarts(restarts_);
  state.set_usd_spent(cost_.usd());
  state.set_usd_first_plan(cost_.usd_first());
  state.set_first_plan_throughput(cost_.first_throughput());
  state.set_paid_samples(cost_.paid_samples());
  state.set_bad_rows(bad_rows_);
  *state.mutable_recovery() = budget_.ToRecord();
  state.set_train_digest(train_digest_);
  state.set_test_digest(test_digest_);
  state.set_validation_digest(validation_digest_);
  if (checkpoint_failure_) *state.mutable_checkpoint_failure() = *checkpoint_failure_;
  state.set_checkpoint_failures(checkpoint_failures_);
  for (const auto& [name, standby] : standbys_.all()) *state.add_standbys() = standby.record;
  for (const job::v1::SwitchRecord& record : switches_) *state.add_switches() = record;
  state.set_outcome(outcome_);
  state.set_message(message_);
  state.set_retryable(retryable_);
  for (const job::v1::EvaluationRecord& record : curve_.records()) *state.add_evaluations() = record;
  for (const auto& [name, value] : metrics_) (*state.mutable_metrics())[name] = value;
  return state;
}

void CoordinatorCore::Hold(Instant now) {
  std::map<std::string, int> units;
  for (const auto& [name, member] : members_) ++units[member.hello.pool()];
  cost_.Hold(now.steady, units);
}

}  // namespace medley::worker
