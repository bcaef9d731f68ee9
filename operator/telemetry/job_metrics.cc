#include "operator/telemetry/job_metrics.h"

#include <algorithm>
#include <utility>

namespace medley::ops {
namespace {

using metrics::TextPage;
using Kind = TextPage::Kind;

struct Value {
  const char* name;
  Kind kind;
  const char* help;
  std::optional<double> JobSnapshot::*member;
};

constexpr Value kValues[] = {
    {"medley_job_throughput_samples_per_second", Kind::kGauge,
     "Samples trained per second over the last seconds; 0 while the job does not train", &JobSnapshot::throughput},
    {"medley_job_goal_samples_per_second", Kind::kGauge, "spec.objective.minThroughput", &JobSnapshot::goal_throughput},
    {"medley_job_predicted_samples_per_second", Kind::kGauge, "Throughput that the plan was chosen for",
     &JobSnapshot::predicted_throughput},
    {"medley_job_loss", Kind::kGauge, "Mean loss of the last steps", &JobSnapshot::loss},
    {"medley_job_evaluation_training_loss", Kind::kGauge,
     "Mean training loss between the last evaluation and the one before", &JobSnapshot::evaluation_training_loss},
    {"medley_job_evaluation_epochs", Kind::kGauge, "Complete passes over the training data at the last evaluation",
     &JobSnapshot::evaluation_epochs},
    {"medley_job_target_samples", Kind::kGauge, "Samples to train in all: rows times epochs",
     &JobSnapshot::target_samples},
    {"medley_job_progress_ratio", Kind::kGauge, "Share of the samples that has been trained",
     &JobSnapshot::progress_ratio},
    {"medley_job_remaining_seconds", Kind::kGauge, "Estimated seconds until the last sample, at the current throughput",
     &JobSnapshot::remaining_seconds},
    {"medley_job_generation", Kind::kGauge, "Generation in force", &JobSnapshot::generation},
    {"medley_job_plan_generation", Kind::kGauge, "Generation of the plan that was accepted last",
     &JobSnapshot::plan_generation},
    {"medley_job_committed_step", Kind::kGauge, "Steps that every member has applied", &JobSnapshot::step},
    {"medley_job_checkpoint_step", Kind::kGauge, "Step of the last complete checkpoint", &JobSnapshot::checkpoint_step},
    {"medley_job_bad_rows", Kind::kGauge, "Rows of the training data that were refused as malformed",
     &JobSnapshot::bad_rows},
    {"medley_job_missing_members", Kind::kGauge, "Slots of the plan without a running pod",
     &JobSnapshot::missing_members},
    {"medley_job_left_out_members", Kind::kGauge, "Slow trainers that stand by", &JobSnapshot::left_out_members},
    {"medley_job_agreement_fraction", Kind::kGauge, "Share of the steps after which replicas average their parameters",
     &JobSnapshot::agreement_fraction},
    {"medley_job_synchronisation_ratio", Kind::kGauge, "Time of synchronisation over time of computation",
     &JobSnapshot::synchronisation_ratio},
    {"medley_job_embedding_disk_wait_seconds_total", Kind::kCounter,
     "Seconds in which pulls and updates of rows waited for the disk", &JobSnapshot::embedding_wait_seconds},
    {"medley_job_staleness_steps", Kind::kGauge, "Steps by which a gradient of the plan is late at most",
     &JobSnapshot::staleness_steps},
    {"medley_job_restarts_total", Kind::kCounter, "Restarts of the whole job from its last checkpoint",
     &JobSnapshot::restarts},
    {"medley_job_cost_usd_total", Kind::kCounter, "USD that all pods of the job have cost", &JobSnapshot::cost_usd},
    {"medley_job_saved_usd", Kind::kGauge,
     "USD that training cost less than with the first plan, for the same samples; negative: it cost more",
     &JobSnapshot::saved_usd},
    {"medley_job_goodput_ratio", Kind::kGauge,
     "Share of the USD that useful training has cost; of the unit-seconds while nothing has cost anything",
     &JobSnapshot::goodput_ratio},
    {"medley_job_promised_usd", Kind::kGauge, "USD of the whole job by its first plan", &JobSnapshot::promised_usd},
    {"medley_job_budget_usd", Kind::kGauge, "spec.objective.budgetUsd", &JobSnapshot::budget_usd},
    {"medley_job_max_usd_per_hour", Kind::kGauge, "spec.objective.maxUsdPerHour", &JobSnapshot::max_usd_per_hour},
    {"medley_job_deadline_timestamp_seconds", Kind::kGauge, "When spec.objective.deadline ends, Unix time",
     &JobSnapshot::deadline_timestamp},
    {"medley_job_price_timestamp_seconds", Kind::kGauge, "Time of the prices that the plan was made with",
     &JobSnapshot::price_timestamp},
    {"medley_job_start_timestamp_seconds", Kind::kGauge, "When the job started, Unix time",
     &JobSnapshot::start_timestamp},
    {"medley_job_completion_timestamp_seconds", Kind::kGauge, "When the job ended, Unix time",
     &JobSnapshot::completion_timestamp},
};

metrics::LabelPairs Of(const kube::Key& job) { return {{"namespace", job.ns}, {"job", job.name}}; }

metrics::LabelPairs Of(const kube::Key& job, metrics::LabelPairs more) {
  metrics::LabelPairs labels = Of(job);
  labels.insert(labels.end(), more.begin(), more.end());
  return labels;
}

}  // namespace

void JobMetrics::Set(const kube::Key& job, JobSnapshot snapshot, base::WallTime now) {
  base::MutexLock lock(mutex_);
  Entry& entry = jobs_[job];
  if (!entry.seen.uid.empty() && entry.seen.uid != snapshot.uid) entry = Entry();  // another job with the same name
  const bool more = snapshot.samples && *snapshot.samples > entry.most_samples.value_or(-1);
  if (more) entry.most_samples = snapshot.samples;
  const bool begins = snapshot.phase == "Running" && entry.seen.phase != "Running";
  if (more || begins) entry.progress_timestamp = base::ToSeconds(now.time_since_epoch());
  entry.seen = std::move(snapshot);
}

void JobMetrics::AddSwitch(const kube::Key& job, bool recovery, double pause_seconds, double lost_steps) {
  base::MutexLock lock(mutex_);
  Entry& entry = jobs_[job];
  Switches& switches = recovery ? entry.recoveries : entry.rescales;
  switches.count += 1;
  switches.pause_seconds += pause_seconds;
  entry.lost_steps += lost_steps;
}

void JobMetrics::Remove(const kube::Key& job) {
  base::MutexLock lock(mutex_);
  jobs_.erase(job);
}

JobMetrics::Totals JobMetrics::Sum() const {
  base::MutexLock lock(mutex_);
  Totals totals;
  for (const auto& [job, entry] : jobs_) {
    ++totals.jobs[entry.seen.phase];
    for (const auto& [pool, usd] : entry.seen.usd_per_hour) totals.usd_per_hour += usd;
  }
  return totals;
}

void JobMetrics::Write(TextPage& page) const {
  base::MutexLock lock(mutex_);
  WriteValues(page);
  WriteState(page);
  WritePlans(page);
  WriteStages(page);
  WriteSwitches(page);
}

void JobMetrics::WriteValues(TextPage& page) const {
  for (const Value& value : kValues) {
    page.Family(value.name, value.kind, value.help);
    for (const auto& [job, entry] : jobs_) {
      if (const auto& number = entry.seen.*value.member) page.Sample(Of(job), *number);
    }
  }
  page.Family("medley_job_samples_total", Kind::kCounter,
              "Samples trained; those that are trained again after a rollback count once");
  for (const auto& [job, entry] : jobs_) {
    if (entry.most_samples) page.Sample(Of(job), *entry.most_samples);
  }
  page.Family("medley_job_last_progress_timestamp_seconds", Kind::kGauge,
              "When samples were last trained for the first time, or the job began to run, Unix time");
  for (const auto& [job, entry] : jobs_) {
    if (entry.progress_timestamp) page.Sample(Of(job), *entry.progress_timestamp);
  }
  struct Family {
    const char* name;
    Kind kind;
    const char* help;
    const char* label;
    std::map<std::string, double> JobSnapshot::*member;
  };
  constexpr Family kFamilies[] = {
      {"medley_job_unit_seconds", Kind::kGauge,
       "Unit-seconds that were paid, by what they were for; seconds of training that is lost change their category",
       "category", &JobSnapshot::unit_seconds},
      {"medley_job_bill_usd", Kind::kGauge, "USD that those unit-seconds have cost", "category",
       &JobSnapshot::bill_usd},
      {"medley_job_embedding_rows", Kind::kGauge, "Rows of embedding tables that are kept", "place",
       &JobSnapshot::embedding_rows},
      {"medley_job_embedding_row_bytes", Kind::kGauge, "Bytes of these rows, on the disk with old ones", "place",
       &JobSnapshot::embedding_bytes},
      {"medley_job_embedding_pulled_rows_total", Kind::kCounter, "Rows that pulls have found", "found",
       &JobSnapshot::embedding_pulled},
      {"medley_job_embedding_moved_rows_total", Kind::kCounter, "Rows that have moved", "to",
       &JobSnapshot::embedding_moved},
      {"medley_job_embedding_device_rows_total", Kind::kCounter, "Rows that steps on GPUs used", "found",
       &JobSnapshot::embedding_device_rows},
      {"medley_job_embedding_device_bytes_total", Kind::kCounter,
       "Bytes of rows, their optimizer state or their gradients that were copied between GPUs and hosts", "to",
       &JobSnapshot::embedding_device_bytes},
      {"medley_job_score", Kind::kGauge, "Result on the test data", "score", &JobSnapshot::scores},
  };
  for (const Family& family : kFamilies) {
    page.Family(family.name, family.kind, family.help);
    for (const auto& [job, entry] : jobs_) {
      for (const auto& [label, value] : entry.seen.*family.member) page.Sample(Of(job, {{family.label, label}}), value);
    }
  }
}

void JobMetrics::WriteState(TextPage& page) const {
  page.Family("medley_job_phase", Kind::kGauge, "1 for the current phase of the job");
  for (const auto& [job, entry] : jobs_) page.Sample(Of(job, {{"phase", entry.seen.phase}}), 1);
  page.Family("medley_job_condition", Kind::kGauge, "1 for the status and reason of each of the job's conditions");
  for (const auto& [job, entry] : jobs_) {
    for (const JobSnapshot::Condition& condition : entry.seen.conditions) {
      page.Sample(Of(job, {{"condition", condition.type}, {"status", condition.status}, {"reason", condition.reason}}),
                  1);
    }
  }
}

void JobMetrics::WritePlans(TextPage& page) const {
  page.Family("medley_job_plan_info", Kind::kGauge, "Always 1; the labels describe the plan in one line");
  for (const auto& [job, entry] : jobs_) {
    const JobSnapshot& seen = entry.seen;
    if (!seen.plan.empty()) page.Sample(Of(job, {{"planner", seen.planner}, {"plan", seen.plan}}), 1);
  }
  page.Family("medley_job_units", Kind::kGauge, "Units that the plan holds");
  for (const auto& [job, entry] : jobs_) {
    for (const JobSnapshot::Units& units : entry.seen.units) {
      page.Sample(Of(job, {{"stage", units.stage}, {"pool", units.pool}, {"role", units.role}}), units.units);
    }
  }
  page.Family("medley_job_usd_per_hour", Kind::kGauge, "Price of the units that the plan holds");
  for (const auto& [job, entry] : jobs_) {
    for (const auto& [pool, usd] : entry.seen.usd_per_hour) page.Sample(Of(job, {{"pool", pool}}), usd);
  }
}

void JobMetrics::WriteStages(TextPage& page) const {
  struct StageValue {
    const char* name;
    const char* help;
    std::optional<double> JobSnapshot::Stage::*member;
  };
  constexpr StageValue kStageValues[] = {
      {"medley_job_stage_predicted_samples_per_second", "Throughput that the plan expects of the stage",
       &JobSnapshot::Stage::predicted_throughput},
      {"medley_job_stage_throughput_samples_per_second",
       "Samples per second that the stage would reach without communication", &JobSnapshot::Stage::throughput},
      {"medley_job_stage_compute_seconds", "Computation of the stage per step, mean of the last seconds",
       &JobSnapshot::Stage::compute_seconds},
      {"medley_job_stage_communication_seconds",
       "Time per step that the stage waits for activations, gradients, rows and reduction, mean of "
       "the last seconds",
       &JobSnapshot::Stage::communication_seconds},
  };
  for (const StageValue& value : kStageValues) {
    page.Family(value.name, Kind::kGauge, value.help);
    for (const auto& [job, entry] : jobs_) {
      for (const JobSnapshot::Stage& stage : entry.seen.stages) {
        if (const auto& number = stage.*value.member) {
          page.Sample(Of(job, {{"stage", stage.stage}, {"pool", stage.pool}}), *number);
        }
      }
    }
  }
}

void JobMetrics::WriteSwitches(TextPage& page) const {
  page.Family("medley_job_pause_seconds", Kind::kSummary,
              "Generation switches and how long training paused for them, since this operator started");
  for (const auto& [job, entry] : jobs_) {
    for (const auto& [kind, switches] :
         {std::pair("rescale", &entry.rescales), std::pair("recovery", &entry.recoveries)}) {
      page.Sample(Of(job, {{"kind", kind}}), switches->pause_seconds, "_sum");
      page.Sample(Of(job, {{"kind", kind}}), switches->count, "_count");
    }
  }
  page.Family("medley_job_lost_steps_total", Kind::kCounter,
              "Steps that were trained again after recoveries; since this operator started");
  for (const auto& [job, entry] : jobs_) page.Sample(Of(job), entry.lost_steps);
}

}  // namespace medley::ops
