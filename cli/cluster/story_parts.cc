#include "cli/cluster/story_parts.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <set>

#include "cli/cluster/embedding_view.h"
#include "cli/format.h"
#include "cli/table.h"
#include "operator/api/training_job.h"
#include "operator/api/worker_state.h"

namespace medley::cli {
namespace {

constexpr double kGoalTolerance = 0.95;  // the same as the operator's

std::string Met(bool met) { return met ? "met" : "NOT MET"; }

std::string LayersText(const ops::PlanRecord* record, const std::string& layers) {
  if (record == nullptr) return layers;
  int first = 0;
  int last = 0;
  if (std::sscanf(layers.c_str(), "%d-%d", &first, &last) != 2) return layers;
  const auto name = [&](int i) {
    return i >= 0 && i < static_cast<int>(record->layer_names.size()) ? record->layer_names[static_cast<size_t>(i)]
                                                                      : std::to_string(i);
  };
  return first == last ? name(first) : name(first) + ".." + name(last);
}

double PriceOf(const ops::PlanRecord* record, const std::string& pool) {
  if (record == nullptr) return 0;
  const auto found = record->usd_per_unit_hour.find(pool);
  return found == record->usd_per_unit_hour.end() ? 0 : found->second;
}

std::string Proof(const ops::PlanRecord& record) {
  const model::Provenance& from = record.plan.provenance;
  if (from.lower_bound_usd <= 0 && from.planner == "exact" && record.plan.devices.empty()) {
    return from.gap <= 0
               ? "proof: no plan within the bounds is better for the objective"
               : fmt::format("proof: the plan is at most {:.2f} % from the best for the objective", from.gap * 100);
  }
  if (from.lower_bound_usd <= 0) return "proof: none, because planner " + from.planner + " computes no lower bound";
  if (from.gap <= 0) {
    return fmt::format("proof: no plan that reaches the goals costs less than {} USD", Usd(from.lower_bound_usd));
  }
  return fmt::format("proof: no plan costs less than {} USD, so this one is at most {:.2f} % too expensive",
                     Usd(from.lower_bound_usd), from.gap * 100);
}

}  // namespace

std::string PodProblem(const kube::Object& pod) {
  const std::string phase = pod.String("/status/phase");
  if (pod.deleting()) return "is terminating";
  if (phase == "Failed") {
    const std::string reason = pod.String("/status/reason");
    const kube::Object worker = ops::WorkerStatus(pod);
    const kube::Json& code = worker.At("/state/terminated/exitCode");
    const std::string how = worker.String("/state/terminated/reason");
    return fmt::format("has failed: {}{}{}", reason.empty() ? how : reason,
                       code.is_number_integer() ? ", exit code " + code.dump() : "",
                       pod.String("/status/message").empty() ? "" : ", " + pod.String("/status/message"));
  }
  for (const kube::Json& status : pod.At("/status/containerStatuses")) {
    const kube::Object container(status);
    const std::string waiting = container.String("/state/waiting/reason");
    if (waiting.empty()) continue;
    const std::string message = container.String("/state/waiting/message");
    return "is waiting: " + waiting + (message.empty() ? "" : ": " + message);
  }
  for (const kube::Json& condition : pod.At("/status/conditions")) {
    const kube::Object view(condition);
    if (view.String("/type") == "PodScheduled" && view.String("/status") == "False") {
      return "is not scheduled: " + view.String("/message");
    }
  }
  return phase == "Pending" || phase.empty() ? "has not started" : "";
}

std::vector<const ops::Condition*> NotableConditions(const ops::JobStatus& status) {
  std::vector<const ops::Condition*> found;
  const auto add = [&](const char* type, ops::ConditionStatus bad) {
    const ops::Condition* condition = status.conditions.Find(type);
    if (condition != nullptr && condition->status == bad) found.push_back(condition);
  };
  if (status.conditions.IsTrue(ops::kCompleteCondition)) return found;
  add(ops::kFailedCondition, ops::ConditionStatus::kTrue);
  if (!found.empty()) return found;
  add(ops::kSuspendedCondition, ops::ConditionStatus::kTrue);
  if (!found.empty()) return found;
  add(ops::kPlannedCondition, ops::ConditionStatus::kFalse);
  add(ops::kPlannedCondition, ops::ConditionStatus::kUnknown);
  add(ops::kPoolsUsableCondition, ops::ConditionStatus::kFalse);
  add(ops::kNamesAvailableCondition, ops::ConditionStatus::kFalse);
  add(ops::kRecordsGenuineCondition, ops::ConditionStatus::kFalse);
  add(ops::kCheckpointFailingCondition, ops::ConditionStatus::kTrue);
  add(ops::kRestartingCondition, ops::ConditionStatus::kTrue);
  add(ops::kRescalingCondition, ops::ConditionStatus::kTrue);
  if (!status.conditions.IsTrue(ops::kPlannedCondition)) return found;
  add(ops::kPodsReadyCondition, ops::ConditionStatus::kFalse);
  return found;
}

std::vector<std::string> DeletedPools(const Story& story, const ops::JobStatus& status) {
  std::vector<std::string> lines;
  if (!status.plan || story.pools.empty()) return lines;  // without pools: the user may not see them
  std::set<std::string> planned;
  for (const ops::PlanStatus::Stage& stage : status.plan->stages) planned.insert(stage.pool);
  if (status.plan->servers > 0) planned.insert(status.plan->server_pool);
  for (const kube::Object& pool : story.pools) {
    if (!pool.deleting()) planned.erase(pool.key().name);
  }
  for (const std::string& pool : planned) {
    lines.push_back(
        fmt::format("ResourcePool {} of the plan was deleted: the job is planned again without it, and waits if no "
                    "other pool will do",
                    pool));
  }
  return lines;
}

std::vector<std::string> PodProblems(const Story& story) {
  std::vector<std::string> lines;
  for (const kube::Object& pod : story.pods) {
    if (const std::string why = PodProblem(pod); !why.empty()) lines.push_back("pod " + pod.key().name + " " + why);
  }
  return lines;
}

std::vector<std::string> Goals(const Story& story, const ops::JobStatus& status, base::WallTime now) {
  const auto job = ops::TrainingJob::FromObject(story.job);
  if (!job.ok()) return {};
  const ops::Objective& goal = job->objective;
  const bool runs = status.conditions.IsTrue(ops::kRunningCondition) && status.observed && !status.finished();
  const double measured = runs ? status.observed->throughput : 0;
  const double left = runs ? static_cast<double>(status.observed->estimated_remaining_seconds) : 0;
  const double spent = status.cost ? status.cost->spent_usd : 0;
  const double per_hour = status.plan && !status.finished() ? status.plan->usd_per_hour : 0;
  Table table({"GOAL", "TARGET", "CURRENT", ""});
  int goals = 0;
  const auto add = [&](const char* name, const std::string& wanted, const std::string& is, const std::string& met) {
    ++goals;
    table.Add({name, wanted, is, met});
  };
  if (goal.min_throughput > 0) {
    add("minThroughput", Thousands(goal.min_throughput) + " samples/s", measured > 0 ? Thousands(measured) : "-",
        measured > 0 ? Met(measured >= goal.min_throughput * kGoalTolerance) : "");
  }
  if (goal.deadline_seconds > 0) {
    const auto start = base::ParseTime(status.start_time);
    const auto end = base::ParseTime(status.completion_time);
    const bool complete = status.conditions.IsTrue(ops::kCompleteCondition) && end.ok();
    const bool known = start.ok() && (runs || complete);
    const double all = !known ? 0 : base::ToSeconds((runs ? now : *end) - *start) + left;
    add("deadline", Span(goal.deadline_seconds) + " from the start", known ? (runs ? "about " : "") + Span(all) : "-",
        known ? Met(all <= goal.deadline_seconds) : "");
  }
  if (goal.budget_usd > 0) {
    const double expected = spent + per_hour * left / 3600;
    add("budgetUsd", Usd(goal.budget_usd) + " USD",
        fmt::format("{} spent{}", Usd(spent), runs ? ", about " + Usd(expected) + " at the end" : ""),
        Met(expected <= goal.budget_usd));
  }
  if (goal.max_usd_per_hour > 0) {
    add("maxUsdPerHour", Usd(goal.max_usd_per_hour) + " USD/h", per_hour > 0 ? Usd(per_hour) : "-",
        per_hour > 0 ? Met(per_hour <= goal.max_usd_per_hour * (1 + 1e-9)) : "");
  }
  std::vector<std::string> lines = goals == 0 ? std::vector<std::string>() : Lines(table.Text());
  const std::string within = goals == 0 ? "" : " within these bounds";
  if (goal.fastest) {
    lines.push_back(goals == 0 ? "fastest: the fewest seconds of a step, whatever the units cost"
                               : "fastest: the fewest seconds of a step" + within);
  } else if (goal.least_usd_per_hour) {
    lines.push_back("the plan that costs the least USD per hour" + within);
  } else if (goals == 0) {
    lines.emplace_back("none: the cheapest plan is used");
  }
  return lines;
}

std::vector<std::string> Plan(const Story& story, const ops::JobStatus& status, base::WallTime now) {
  if (!status.plan) return {};
  const ops::PlanStatus& plan = *status.plan;
  const ops::PlanRecord* record =
      story.record && story.record->plan.generation == plan.generation ? &*story.record : nullptr;
  std::string first = fmt::format("generation {} from planner {}", plan.generation, plan.planner);
  if (record != nullptr)
    first += fmt::format(", {} ago because of {}", Ago(record->accepted_at, now), ToString(record->reason));
  first += fmt::format(": {} samples/s for {} USD/h", WithSpread(plan.throughput, plan.throughput_spread),
                       Usd(plan.usd_per_hour));
  if (plan.usd_total > 0) first += fmt::format(", {} USD for the samples that remained", Usd(plan.usd_total));
  std::vector<std::string> body = {first};
  double slowest = 0;
  for (const ops::PlanStatus::Stage& stage : plan.stages) {
    if (stage.throughput > 0) slowest = slowest == 0 ? stage.throughput : std::min(slowest, stage.throughput);
  }
  Table table({"STAGE", "LAYERS", "POOL", "UNITS", "USD/UNIT-H", "SAMPLES/S", ""});
  for (size_t i = 0; i < plan.stages.size(); ++i) {
    const ops::PlanStatus::Stage& s = plan.stages[i];
    const double price = PriceOf(record, s.pool);
    table.Add({std::to_string(i), LayersText(record, s.layers), s.pool, std::to_string(s.units),
               OrDash(price > 0, Usd(price)), OrDash(s.throughput > 0, Thousands(s.throughput)),
               s.throughput > 0 && s.throughput <= slowest * (1 + 1e-9) ? "limits the throughput" : ""});
  }
  if (plan.servers > 0) {
    const double price = PriceOf(record, plan.server_pool);
    table.Add({"-", "parameter servers", plan.server_pool, std::to_string(plan.servers), OrDash(price > 0, Usd(price)),
               "-", ""});
  }
  if (plan.trainers_with_rows > 0) {
    table.Add({"-", "embedding rows", "(in the trainers)", std::to_string(plan.trainers_with_rows), "-", "-", ""});
  }
  for (size_t i = 0; i < plan.stages.size(); ++i) {
    if (plan.stages[i].tables.empty()) continue;
    table.Add({std::to_string(i), "embedding tables", TablesText(plan.stages[i].tables), "", "", "", ""});
  }
  for (std::string& line : Lines(table.Text())) body.push_back(std::move(line));
  if (record != nullptr) body.push_back(Proof(*record));
  if (!plan.price_time.empty()) {
    body.push_back(
        fmt::format("prices: {} old, catalog revision {}", Ago(plan.price_time, now), plan.catalog_revision));
  }
  return body;
}

std::vector<std::string> Alternatives(const ops::JobStatus& status) {
  if (!status.plan || status.plan->alternatives.empty()) return {};
  const ops::PlanStatus& plan = *status.plan;
  Table table({"ALTERNATIVE", "SAMPLES/S", "USD/H", "USD", "COMPARED WITH THE PLAN"});
  for (const ops::PlanStatus::Alternative& other : plan.alternatives) {
    if (!other.reason.empty()) {
      table.Add({other.label, "-", "-", "-", "not possible: " + other.reason});
      continue;
    }
    if (other.usd_per_hour <= 0) {  // of a job with spec.objective.fastest
      table.Add({other.label, Thousands(other.throughput), "-", "-", Percent(plan.throughput, other.throughput)});
      continue;
    }
    const bool totals = other.usd_total > 0 && plan.usd_total > 0;
    const double base = totals ? plan.usd_total : plan.usd_per_hour;
    table.Add({other.label, Thousands(other.throughput), Usd(other.usd_per_hour),
               OrDash(other.usd_total > 0, Usd(other.usd_total)),
               Percent(base, totals ? other.usd_total : other.usd_per_hour) + (totals ? "" : " per hour")});
  }
  return Lines(table.Text());
}

std::vector<std::string> Prediction(const Story& story, const ops::JobStatus& status) {
  if (!status.plan || !status.observed || status.observed->throughput <= 0 || status.plan->throughput <= 0) return {};
  const double predicted = status.plan->throughput;
  const double measured = status.observed->throughput;
  std::vector<std::string> body;
  body.push_back(fmt::format("throughput  {} samples/s predicted, {} measured: {}",
                             WithSpread(predicted, status.plan->throughput_spread), Thousands(measured),
                             Percent(predicted, measured)));
  const bool whole = story.record && story.record->plan.estimate.usd_total > 0 &&
                     story.record->reason == ops::Reason::kFirstPlan &&
                     status.conditions.IsTrue(ops::kCompleteCondition) && status.cost;
  if (whole) {
    const double usd = story.record->plan.estimate.usd_total;
    body.push_back(fmt::format("cost        {} USD predicted, {} spent: {}", Usd(usd), Usd(status.cost->spent_usd),
                               Percent(usd, status.cost->spent_usd)));
  }
  if (status.conditions.IsTrue(ops::kRescalingCondition)) {
    body.emplace_back("the measured throughput is that of the previous generation, because the job is moving");
  }
  return body;
}

}  // namespace medley::cli
