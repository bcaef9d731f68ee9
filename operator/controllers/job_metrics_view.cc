#include "operator/controllers/job_metrics_view.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/model/placement.h"

namespace medley::ops {
namespace {

// RFC 3339 as Unix seconds; nothing when it is empty or invalid.
std::optional<double> Timestamp(const std::string& time) {
  if (time.empty()) return std::nullopt;
  const auto parsed = base::ParseTime(time);
  if (!parsed.ok()) return std::nullopt;
  return base::ToSeconds(parsed->time_since_epoch());
}

std::optional<double> Positive(double value) { return value > 0 ? std::optional(value) : std::nullopt; }

void FillGoals(const Objective& objective, const std::string& start_time, JobSnapshot& out) {
  out.goal_throughput = Positive(objective.min_throughput);
  out.budget_usd = Positive(objective.budget_usd);
  out.max_usd_per_hour = Positive(objective.max_usd_per_hour);
  const auto start = Timestamp(start_time);
  if (objective.deadline_seconds > 0 && start) out.deadline_timestamp = *start + objective.deadline_seconds;
}

void FillBill(const GoodputStatus& goodput, JobSnapshot& out) {
  if (goodput.promised) out.promised_usd = goodput.promised->usd;
  const goodput::Amounts seconds = goodput.bill.Seconds();
  const goodput::Amounts usd = goodput.bill.Usd();
  if (seconds.Sum() <= 0) return;
  out.goodput_ratio = goodput.bill.Share();
  for (const goodput::Category category : goodput::kCategories) {
    out.unit_seconds[std::string(ToString(category))] = seconds[category];
    out.bill_usd[std::string(ToString(category))] = usd[category];
  }
}

void FillStatus(const JobStatus& status, bool trains, JobSnapshot& out) {
  out.phase = status.Phase();
  for (const Condition& condition : status.conditions.all()) {
    out.conditions.push_back({condition.type, std::string(ToString(condition.status)), condition.reason});
  }
  out.restarts = status.restarts;
  out.start_timestamp = Timestamp(status.start_time);
  out.completion_timestamp = Timestamp(status.completion_time);
  if (status.cost) {
    out.cost_usd = status.cost->spent_usd;
    out.saved_usd = status.cost->saved_usd;
  }
  if (status.goodput) FillBill(*status.goodput, out);
  if (!status.observed) return;
  const ObservedStatus& observed = *status.observed;
  out.throughput = trains ? observed.throughput : 0;
  if (observed.step > 0) out.loss = observed.loss;
  out.samples = static_cast<double>(observed.samples);
  out.step = static_cast<double>(observed.step);
  out.checkpoint_step = static_cast<double>(observed.last_checkpoint_step);
  out.bad_rows = static_cast<double>(observed.bad_rows);
  out.scores = observed.metrics;
  if (!observed.evaluations.empty()) {
    out.evaluation_training_loss = observed.evaluations.back().loss;
    out.evaluation_epochs = observed.evaluations.back().epochs;
  }
  if (observed.samples_total > 0) {
    out.target_samples = static_cast<double>(observed.samples_total);
    out.progress_ratio = *out.samples / *out.target_samples;
  }
  if (trains && observed.throughput > 0) {
    out.remaining_seconds = static_cast<double>(observed.estimated_remaining_seconds);
  }
}

std::string PoolsOf(const model::Stage& stage) {
  std::string pools;
  for (const model::Group& group : stage.groups) pools += (pools.empty() ? "" : "+") + group.pool;
  return pools;
}

void FillPlan(const PlanRecord& record, JobSnapshot& out) {
  const model::ExecutionPlan& plan = record.plan;
  const auto hold = [&](const std::string& stage, const std::string& pool, const char* role, int units) {
    out.units.push_back({stage, pool, role, static_cast<double>(units)});
    const auto price = record.usd_per_unit_hour.find(pool);
    if (price != record.usd_per_unit_hour.end()) out.usd_per_hour[pool] += units * price->second;
  };
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    const std::string index = std::to_string(s);
    for (const model::Group& group : plan.stages[s].groups) hold(index, group.pool, "trainer", group.units);
    JobSnapshot::Stage stage{.stage = index,
                             .pool = PoolsOf(plan.stages[s]),
                             .predicted_throughput = {},
                             .throughput = {},
                             .compute_seconds = {},
                             .communication_seconds = {}};
    if (s < record.stage_throughput.size()) stage.predicted_throughput = Positive(record.stage_throughput[s]);
    out.stages.push_back(std::move(stage));
  }
  if (plan.stages.empty()) {  // one entry for each pool, in the order of the coordinator's observation
    std::vector<std::string> pools;
    for (const model::Device& device : plan.devices) {
      if (std::find(pools.begin(), pools.end(), device.pool) == pools.end()) pools.push_back(device.pool);
    }
    const std::map<std::string, int> units = model::TrainersByPool(plan);
    for (size_t p = 0; p < pools.size(); ++p) {
      hold(std::to_string(p), pools[p], "trainer", units.at(pools[p]));
      JobSnapshot::Stage& stage = out.stages.emplace_back();
      stage.stage = std::to_string(p);
      stage.pool = pools[p];
    }
  }
  if (plan.servers && !plan.servers->in_trainers) hold("", plan.servers->pool, "server", plan.servers->units);
}

// For the plan that is in force: an observation of another plan has other stages.
void FillStages(const Observation& seen, JobSnapshot& out) {
  if (seen.stages.size() != out.stages.size()) return;
  for (size_t s = 0; s < seen.stages.size(); ++s) {
    if (!(seen.stages[s].compute_seconds > 0)) continue;  // not measured yet
    out.stages[s].throughput = Positive(seen.stages[s].throughput);
    out.stages[s].compute_seconds = seen.stages[s].compute_seconds;
    out.stages[s].communication_seconds = seen.stages[s].comm_seconds;
  }
}

// A row that was read ahead is in memory when it is pulled; it counts apart from those that were there anyway.
void FillEmbeddingRows(const EmbeddingRows& rows, JobSnapshot& out) {
  const auto number = [](int64_t count) { return static_cast<double>(std::max<int64_t>(0, count)); };
  out.embedding_rows = {{"memory", number(rows.in_memory)}, {"disk", number(rows.on_disk)}};
  out.embedding_bytes = {{"memory", number(rows.memory_bytes)}, {"disk", number(rows.disk_bytes)}};
  out.embedding_pulled = {{"memory", number(rows.pulled - rows.loaded)},
                          {"ahead", number(rows.loaded_ahead)},
                          {"disk", number(rows.loaded - rows.loaded_ahead)}};
  out.embedding_moved = {{"memory", number(rows.loaded)}, {"disk", number(rows.left)}};
  out.embedding_wait_seconds = rows.wait_seconds;
}

void FillDeviceTables(const DeviceTables& tables, JobSnapshot& out) {
  const auto number = [](int64_t count) { return static_cast<double>(std::max<int64_t>(0, count)); };
  out.embedding_device_rows = {{"device", number(tables.found)}, {"host", number(tables.used - tables.found)}};
  out.embedding_device_bytes = {{"device", number(tables.bytes_in)}, {"host", number(tables.bytes_out)}};
}

}  // namespace

JobSnapshot SnapshotOf(const lifecycle::JobInput& input, const lifecycle::Memory& memory, const Observation* observed) {
  const JobStatus& status = memory.status.current;
  const std::optional<PlanRecord>& record = memory.stored_plan.record;
  JobSnapshot out;
  out.uid = input.object->uid();
  const bool runs = status.conditions.IsTrue(kRunningCondition) && !status.finished() &&
                    !status.conditions.IsTrue(kSuspendedCondition);
  FillStatus(status, runs, out);
  if (input.job) FillGoals(input.job->objective, status.start_time, out);
  if (status.plan) {
    out.planner = status.plan->planner;
    out.plan = status.plan->summary;
    out.plan_generation = static_cast<double>(status.plan->generation);
    out.predicted_throughput = Positive(status.plan->throughput);
    out.price_timestamp = Timestamp(status.plan->price_time);
  }
  if (record && runs) {
    FillPlan(*record, out);
    out.staleness_steps = model::MostStaleness(record->plan);
    if (observed != nullptr && observed->plan_generation == record->plan.generation) FillStages(*observed, out);
  }
  if (observed != nullptr) {
    out.generation = static_cast<double>(observed->generation);
    out.missing_members = static_cast<double>(observed->missing_members.size());
    out.left_out_members = static_cast<double>(observed->left_out.size());
    if (observed->agreement) {
      out.agreement_fraction = observed->agreement->fraction;
      out.synchronisation_ratio = observed->agreement->ratio;
    }
    if (observed->embedding_rows) FillEmbeddingRows(*observed->embedding_rows, out);
    if (observed->device_tables) FillDeviceTables(*observed->device_tables, out);
  }
  return out;
}

}  // namespace medley::ops
