#include "operator/lifecycle/observing.h"

#include <algorithm>
#include <cmath>

#include "operator/lifecycle/course.h"
#include "operator/lifecycle/pass.h"
#include "operator/lifecycle/running.h"

namespace medley::ops::lifecycle {
namespace {

constexpr size_t kRescalesKept = 32;
constexpr double kMostSeconds = 1e15;

// Counts in doubles: those in a message that a user has written may be any number.
void SetProgress(ObservedStatus& observed) {
  if (observed.samples_total <= 0) return;
  const auto total = static_cast<double>(observed.samples_total);
  const auto done = static_cast<double>(observed.samples);
  observed.progress_percent = static_cast<int>(std::clamp(100 * done / total, 0.0, 100.0));
  const double seconds = observed.throughput > 0 ? std::max(0.0, total - done) / observed.throughput : 0;
  observed.estimated_remaining_seconds = static_cast<int64_t>(std::ceil(std::min(seconds, kMostSeconds)));
}

EmbeddingStatus EmbeddingsOf(const EmbeddingRows& rows) {
  const auto pulled = static_cast<double>(std::max<int64_t>(1, rows.pulled));
  return {rows.in_memory, rows.on_disk, std::max(0.0, 1 - static_cast<double>(rows.loaded) / pulled)};
}

TablesStatus TablesOf(const DeviceTables& tables) {
  const auto used = static_cast<double>(std::max<int64_t>(1, tables.used));
  return {std::string(model::NameOf(tables.place)), std::clamp(static_cast<double>(tables.found) / used, 0.0, 1.0),
          tables.instead};
}

ObservedStatus ObservedOf(const Observation& seen) {
  ObservedStatus observed;
  observed.throughput = seen.throughput;
  observed.samples = seen.samples_done;
  observed.samples_total = seen.samples_total;
  observed.step = seen.step;
  if (seen.epochs > 0) observed.epoch = fmt::format("{}/{}", seen.epoch, seen.epochs);
  observed.loss = seen.loss;
  observed.bad_rows = seen.bad_rows;
  observed.last_checkpoint_step = seen.last_checkpoint_step;
  if (seen.embedding_rows) observed.embeddings = EmbeddingsOf(*seen.embedding_rows);
  if (seen.device_tables) observed.tables = TablesOf(*seen.device_tables);
  observed.metrics = seen.metrics;
  for (const Evaluation& e : seen.evaluations) {
    observed.evaluations.push_back({e.step, e.epochs, e.loss, e.metrics, e.at});
  }
  if (const auto& best = seen.best) {
    observed.best =
        BestStatus{best->step, best->epochs, best->metric, best->value, best->validation ? "Validation" : "Test"};
  }
  if (const auto& exported = seen.exported) {
    observed.exported = ExportedStatus{exported->best ? "Best" : "Last", exported->step, exported->epochs};
  }
  SetProgress(observed);
  return observed;
}

bool HasMoved(const JobStatus& status) {
  return std::any_of(status.rescales.begin(), status.rescales.end(),
                     [](const RescaleStatus& rescale) { return !rescale.recovery; });
}

// The money is counted by CountSpending. The coordinator compares only what training cost, with the first plan and with
// the plans that followed; so before a move there is nothing to compare.
void RecordCost(int64_t samples, JobStatus& status) {
  if (!status.cost || samples <= 0) return;
  status.cost->usd_per_million_samples = status.cost->spent_usd / static_cast<double>(samples) * 1e6;
}

void RecordSaving(const Observation& seen, JobStatus& status) {
  if (!status.cost) return;
  if (HasMoved(status) && seen.usd_spent > 0) status.cost->saved_usd = seen.usd_first_plan - seen.usd_spent;
}

std::string OfStart(double seconds) {
  return seconds > 0 ? fmt::format(" ({:.3f} s of it for the program's start and its first step)", seconds) : "";
}

void RecordSwitches(Pass& pass, const Observation& seen) {
  JobStatus& status = pass.report;
  for (const GenerationSwitch& done : seen.switches) {
    if (done.to_generation <= pass.memory.observing.last_switch) continue;
    pass.Own(&Memory::observing).last_switch = done.to_generation;
    const bool recorded = status.last_rescale && status.last_rescale->to_generation >= done.to_generation;
    if (done.from_generation == 0 || recorded) continue;
    pass.Publish(RecordSwitch{done.recovery, done.pause_seconds, done.lost_steps});
    // The status has one word as the reason; the coordinator's sentence goes into the Event.
    status.last_rescale = RescaleStatus{done.from_generation,
                                        done.to_generation,
                                        done.cause,
                                        done.pause_seconds,
                                        done.at.empty() ? base::FormatTime(pass.world.now) : done.at,
                                        done.recovery,
                                        done.lost_steps,
                                        done.start_seconds};
    status.rescales.push_back(*status.last_rescale);
    if (status.rescales.size() > kRescalesKept) status.rescales.erase(status.rescales.begin());
    if (done.cause == kMemberSlow || done.cause == kStandbyReturned) {  // the reason is a sentence
      pass.Event(done.cause == kMemberSlow ? "TrainerLeftOut" : "TrainerReturned", done.reason);
      continue;
    }
    pass.Event(done.recovery ? "Recovered" : "Rescaled",
               fmt::format("generation {} -> {} ({}): training stood still for {:.3f} s{}, {} steps trained again",
                           done.from_generation, done.to_generation, done.reason, done.pause_seconds,
                           OfStart(done.start_seconds), done.lost_steps));
  }
}

// The Event is published once; the sentence of the condition follows each further failure.
void RecordCheckpointFailure(Pass& pass, const Observation& seen) {
  Conditions& conditions = pass.report.conditions;
  if (!seen.checkpoint_failure) {
    if (!conditions.IsTrue(kCheckpointFailingCondition)) return;
    const std::string message = fmt::format("The last checkpoint is of step {}.", seen.last_checkpoint_step);
    SetCondition(pass, kCheckpointFailingCondition, ConditionStatus::kFalse, Reason::kCheckpointWritten, message);
    pass.Event(Reason::kCheckpointWritten, message);
    return;
  }
  const CheckpointFailure& failure = *seen.checkpoint_failure;
  const Reason reason = failure.paused ? Reason::kJournalNotWritable : Reason::kVolumeNotWritable;
  const std::string last = seen.last_checkpoint_step > 0
                               ? fmt::format("the last checkpoint is of step {}", seen.last_checkpoint_step)
                               : std::string("there is no checkpoint yet");
  const std::string message =
      fmt::format("Since {}, checkpoints cannot be written; {}, and {}. The last error: {}", failure.since,
                  failure.paused ? "training pauses, because the journal cannot be written either"
                                 : "the job goes on and tries again",
                  last, failure.message);
  const Condition* const before = conditions.Find(kCheckpointFailingCondition);
  const bool known = before != nullptr && before->status == ConditionStatus::kTrue && before->Has(reason);
  SetCondition(pass, kCheckpointFailingCondition, ConditionStatus::kTrue, reason, message);
  if (!known) pass.Warning(reason, message);
}

// Once for each sentence, before it is in the status.
void RecordTables(Pass& pass, const Observation& seen) {
  if (!seen.device_tables || seen.device_tables->instead.empty()) return;
  const std::optional<ObservedStatus>& before = pass.report.observed;
  if (before && before->tables && before->tables->message == seen.device_tables->instead) return;
  pass.Warning("TablesElsewhere", seen.device_tables->instead);
}

bool Trains(const Observation& seen) {
  return seen.generation > 0 && seen.phase != JobPhase::kUnknown && seen.phase != JobPhase::kWaiting &&
         seen.phase != JobPhase::kFailed && seen.phase != JobPhase::kSuspended;
}

}  // namespace

void RecordObservation(Pass& pass) {
  const Observation& seen = *pass.observed;
  JobStatus& status = pass.report;
  // A coordinator that has just started has not read its journal yet: older values stay.
  if (seen.samples_total > 0 || !status.observed) {
    std::vector<CoursePoint> course = status.observed ? std::move(status.observed->course) : std::vector<CoursePoint>();
    AddToCourse({seen.step, seen.loss, seen.throughput}, course);
    RecordTables(pass, seen);
    status.observed = ObservedOf(seen);
    status.observed->course = std::move(course);
  }
  RecordSwitches(pass, seen);
  RecordCost(seen.samples_done, status);
  RecordSaving(seen, status);
  RecordCheckpointFailure(pass, seen);
  if (Trains(seen)) {
    SetCondition(pass, kRunningCondition, ConditionStatus::kTrue, Reason::kGenerationCommitted,
                 "a generation has committed and samples are trained");
    if (status.conditions.IsTrue(kRestartingCondition)) {
      SetCondition(pass, kRestartingCondition, ConditionStatus::kFalse, Reason::kRestarted, "the job runs again");
    }
  }
  const std::optional<PlanRecord>& record = pass.memory.stored_plan.record;
  if (!record) return;
  if (seen.generation > 0 && seen.generation < record->plan.generation && seen.phase != JobPhase::kFailed) {
    SetCondition(pass, kRescalingCondition, ConditionStatus::kTrue, record->reason,
                 fmt::format("from generation {} to generation {}", seen.generation, record->plan.generation));
  } else if (IsInForce(pass) && status.conditions.IsTrue(kRescalingCondition)) {
    SetCondition(pass, kRescalingCondition, ConditionStatus::kFalse, Reason::kRescaled,
                 fmt::format("generation {} is in force", record->plan.generation));
  }
}

void RecordResult(Pass& pass, const job_result::JobResult& result) {
  JobStatus& status = pass.report;
  if (result.samples_total > 0) {  // else the coordinator failed before it knew anything
    ObservedStatus& observed = status.observed ? *status.observed : status.observed.emplace();
    observed.samples = result.samples;
    observed.samples_total = result.samples_total;
    observed.step = result.step;
    if (result.epochs > 0) observed.epoch = fmt::format("{}/{}", result.epoch, result.epochs);
    if (result.loss) observed.loss = *result.loss;
    observed.bad_rows = result.bad_rows;
    observed.last_checkpoint_step = result.last_checkpoint_step;
    observed.metrics = result.metrics;
    if (const auto& best = result.best) {
      observed.best = BestStatus{best->step, static_cast<int>(best->epochs), best->metric, best->value,
                                 best->validation ? "Validation" : "Test"};
    }
    if (const auto& exported = result.exported) {
      observed.exported =
          ExportedStatus{exported->best ? "Best" : "Last", exported->step, static_cast<int>(exported->epochs)};
    }
    SetProgress(observed);
  }
  RecordCost(result.samples, status);
}

}  // namespace medley::ops::lifecycle
