#include "cli/cluster/top_view.h"

#include <fmt/core.h>

#include <algorithm>
#include <tuple>

#include "cli/format.h"
#include "cli/table.h"
#include "operator/api/job_status.h"
#include "operator/api/pool_status.h"
#include "operator/api/resource_pool.h"
#include "operator/api/training_job.h"

namespace medley::cli {
namespace {

using kube::Json;

std::string ReasonAndMessage(const ops::Condition& condition) { return condition.reason + ": " + condition.message; }

std::string JobProblem(const ops::JobStatus& status) {
  if (status.conditions.IsTrue(ops::kFailedCondition))
    return ReasonAndMessage(*status.conditions.Find(ops::kFailedCondition));
  if (status.finished() || status.conditions.IsTrue(ops::kSuspendedCondition)) return "";
  const ops::Condition* planned = status.conditions.Find(ops::kPlannedCondition);
  if (planned != nullptr && planned->status != ops::ConditionStatus::kTrue) return ReasonAndMessage(*planned);
  if (status.conditions.IsTrue(ops::kRestartingCondition)) {
    return ReasonAndMessage(*status.conditions.Find(ops::kRestartingCondition));
  }
  const ops::Condition* ready = status.conditions.Find(ops::kPodsReadyCondition);
  const bool runs = status.conditions.IsTrue(ops::kRunningCondition);
  return !runs && ready != nullptr && ready->status == ops::ConditionStatus::kFalse ? ReasonAndMessage(*ready) : "";
}

TopJob TakeJob(const kube::Object& object, base::WallTime now) {
  const ops::JobStatus status = ops::JobStatus::FromJson(object.At("/status"));
  const auto job = ops::TrainingJob::FromObject(object);
  TopJob row;
  row.ns = object.key().ns;
  row.name = object.key().name;
  row.status = object.deleting() ? "Terminating" : status.Phase();
  row.problem = JobProblem(status);
  row.age = Ago(object.String("/metadata/creationTimestamp"), now);
  row.restarts = status.restarts;
  if (job.ok()) {
    row.goal = job->objective.min_throughput;
    if (!job->managed_by_us()) row.problem = "managed by " + job->run_policy.managed_by;
  }
  const bool runs = status.conditions.IsTrue(ops::kRunningCondition) && !status.finished();
  if (status.observed) {
    if (runs) row.throughput = status.observed->throughput;
    row.progress_percent = status.observed->progress_percent;
    row.epoch = status.observed->epoch;
    if (status.observed->step > 0) row.loss = status.observed->loss;
    row.metrics = status.observed->metrics;
    if (runs && status.observed->samples_total > 0) {
      row.remaining_seconds = static_cast<double>(status.observed->estimated_remaining_seconds);
    }
  }
  if (status.cost) {
    row.spent_usd = status.cost->spent_usd;
    row.saved_usd = status.cost->saved_usd.value_or(0);
  }
  if (status.plan) {
    row.generation = status.plan->generation;
    row.plan = status.plan->summary;
    // A plan without pods costs nothing.
    if (status.replicas > 0 && !status.finished()) row.usd_per_hour = status.plan->usd_per_hour;
  }
  return row;
}

TopPool TakePool(const kube::Object& object, base::WallTime now) {
  const ops::PoolStatus status = ops::PoolStatus::FromJson(object.At("/status"));
  TopPool row;
  row.name = object.key().name;
  row.cls = object.String("/spec/class");
  row.usd_per_unit_hour = status.usd_per_unit_hour;
  row.price_source = status.price_source;
  row.price_age = Ago(status.price_time, now);
  row.seen = !status.conditions.all().empty();
  const kube::Json& limit = object.At("/spec/limit");
  row.limit = limit.is_number_integer() ? limit.get<int>() : 0;
  row.capacity = status.units.capacity;
  row.used = status.units.used;
  row.free = status.units.free;
  for (const char* type : {ops::kPricedCondition, ops::kAvailableCondition, ops::kProfiledCondition}) {
    const ops::Condition* condition = status.conditions.Find(type);
    if (condition != nullptr && condition->status != ops::ConditionStatus::kTrue && row.problem.empty()) {
      row.problem = ReasonAndMessage(*condition);
    }
  }
  if (!row.seen) row.problem = "the operator has not processed it yet";
  return row;
}

struct Total {
  int jobs = 0;
  int running = 0;
  double usd_per_hour = 0;
  double spent_usd = 0;
  double saved_usd = 0;
};

Total Sum(const TopView& view) {
  Total total;
  for (const TopJob& job : view.jobs) {
    ++total.jobs;
    total.running += job.throughput > 0 ? 1 : 0;
    total.usd_per_hour += job.usd_per_hour;
    total.spent_usd += job.spent_usd;
    total.saved_usd += job.saved_usd;
  }
  return total;
}

// The first of the usual measures of quality that the last evaluation has.
std::string Score(const TopJob& job) {
  for (const char* name : {"auc", "accuracy", "r2", "mse", "logLoss"}) {
    const auto found = job.metrics.find(name);
    if (found != job.metrics.end()) return fmt::format("{} {:.4f}", name, found->second);
  }
  return "-";
}

std::string JobsTable(const TopView& view, bool namespaces) {
  std::vector<std::string> header = {"JOB",   "STATUS", "SAMPLES/S", "GOAL", "USD/H",      "SPENT", "PROGRESS",
                                     "EPOCH", "LOSS",   "SCORE",     "ETA",  "GENERATION", "PLAN"};
  if (namespaces) header.insert(header.begin(), "NAMESPACE");
  Table table(header);
  for (const TopJob& job : view.jobs) {
    std::vector<std::string> row = {job.name,
                                    job.status,
                                    OrDash(job.throughput > 0, Thousands(job.throughput)),
                                    OrDash(job.goal > 0, Thousands(job.goal)),
                                    OrDash(job.usd_per_hour > 0, Usd(job.usd_per_hour)),
                                    OrDash(job.spent_usd > 0, Usd(job.spent_usd)),
                                    OrDash(job.progress_percent >= 0, fmt::format("{} %", job.progress_percent)),
                                    OrDash(!job.epoch.empty(), job.epoch),
                                    job.loss ? fmt::format("{:.4f}", *job.loss) : "-",
                                    Score(job),
                                    OrDash(job.remaining_seconds >= 0, Span(job.remaining_seconds)),
                                    OrDash(job.generation > 0, std::to_string(job.generation)),
                                    !job.problem.empty() ? job.problem
                                    : job.plan.empty()   ? "-"
                                                         : job.plan};
    if (namespaces) row.insert(row.begin(), job.ns);
    table.Add(std::move(row));
  }
  return table.Text();
}

std::string PoolsTable(const TopView& view) {
  Table table({"POOL", "CLASS", "USD/UNIT-H", "PRICE AGE", "CAPACITY", "USED", "FREE", "LIMIT", ""});
  for (const TopPool& pool : view.pools) {
    table.Add({pool.name, pool.cls, OrDash(pool.usd_per_unit_hour > 0, Usd(pool.usd_per_unit_hour)), pool.price_age,
               OrDash(pool.seen, std::to_string(pool.capacity)), OrDash(pool.seen, std::to_string(pool.used)),
               OrDash(pool.seen, std::to_string(pool.free)), std::to_string(pool.limit), pool.problem});
  }
  return table.Text();
}

void Append(std::vector<std::string> more, std::vector<std::string>& lines) {
  for (std::string& line : more) lines.push_back(std::move(line));
}

}  // namespace

TopView TakeTop(const std::vector<kube::Object>& jobs, const std::vector<kube::Object>& pools, base::WallTime now) {
  TopView view;
  for (const kube::Object& job : jobs) view.jobs.push_back(TakeJob(job, now));
  for (const kube::Object& pool : pools) view.pools.push_back(TakePool(pool, now));
  std::sort(view.jobs.begin(), view.jobs.end(),
            [](const TopJob& a, const TopJob& b) { return std::tie(a.ns, a.name) < std::tie(b.ns, b.name); });
  std::sort(view.pools.begin(), view.pools.end(), [](const TopPool& a, const TopPool& b) { return a.name < b.name; });
  return view;
}

std::vector<std::string> TopLines(const TopView& view, bool namespaces, int width) {
  std::vector<std::string> lines;
  const Total total = Sum(view);
  std::string saved;  // empty: no job has moved from its first plan
  if (total.saved_usd < 0) saved = ", " + Usd(-total.saved_usd) + " USD more than with the first plans";
  if (total.saved_usd > 0) saved = ", " + Usd(total.saved_usd) + " USD saved compared with the first plans";
  lines.push_back(fmt::format("{}, {} training, {} USD/h now; {} USD spent{}", Counted(total.jobs, "job"),
                              total.running, Usd(total.usd_per_hour), Usd(total.spent_usd), saved));
  lines.emplace_back();
  if (view.jobs.empty()) {
    lines.emplace_back(namespaces ? "no TrainingJobs" : "no TrainingJobs in this namespace (-A shows all namespaces)");
  } else {
    Append(Lines(JobsTable(view, namespaces)), lines);
  }
  lines.emplace_back();
  if (!view.pools_known) {
    lines.emplace_back("ResourcePools: this user is not allowed to list them (needs ClusterRole medley-pool-viewer)");
  } else if (view.pools.empty()) {
    lines.emplace_back("no ResourcePools: create one, or no job can be planned (docs/use/pools-and-prices.md)");
  } else {
    Append(Lines(PoolsTable(view)), lines);
  }
  for (std::string& line : lines) {
    if (width > 0 && line.size() > static_cast<size_t>(width)) line.resize(static_cast<size_t>(width));
  }
  return lines;
}

std::string TopJson(const TopView& view) {
  Json jobs = Json::array();
  for (const TopJob& job : view.jobs) {
    Json item = {{"namespace", job.ns},          {"name", job.name},          {"status", job.status},
                 {"throughput", job.throughput}, {"goal", job.goal},          {"usdPerHour", job.usd_per_hour},
                 {"spentUsd", job.spent_usd},    {"savedUsd", job.saved_usd}, {"generation", job.generation},
                 {"restarts", job.restarts},     {"plan", job.plan}};
    if (!job.epoch.empty()) item["epoch"] = job.epoch;
    if (job.loss) item["loss"] = *job.loss;
    if (!job.metrics.empty()) item["metrics"] = job.metrics;
    if (job.progress_percent >= 0) item["progressPercent"] = job.progress_percent;
    if (job.remaining_seconds >= 0) item["remainingSeconds"] = job.remaining_seconds;
    if (!job.problem.empty()) item["problem"] = job.problem;
    jobs.push_back(std::move(item));
  }
  Json pools = Json::array();
  for (const TopPool& pool : view.pools) {
    Json item = {{"name", pool.name},         {"class", pool.cls}, {"usdPerUnitHour", pool.usd_per_unit_hour},
                 {"capacity", pool.capacity}, {"used", pool.used}, {"free", pool.free},
                 {"limit", pool.limit}};
    if (!pool.price_source.empty()) item["priceSource"] = pool.price_source;
    if (!pool.problem.empty()) item["problem"] = pool.problem;
    pools.push_back(std::move(item));
  }
  const Total total = Sum(view);
  const Json json = {{"jobs", std::move(jobs)},
                     {"pools", std::move(pools)},
                     {"total",
                      {{"jobs", total.jobs},
                       {"training", total.running},
                       {"usdPerHour", total.usd_per_hour},
                       {"spentUsd", total.spent_usd},
                       {"savedUsd", total.saved_usd}}}};
  return json.dump(2) + "\n";
}

}  // namespace medley::cli
