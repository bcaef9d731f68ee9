#include "cli/run/snapshot.h"

#include "common/base/quantity.h"

namespace medley::cli {
namespace {

using kube::Json;

double Number(const kube::Object& object, std::string_view pointer) {
  const Json& value = object.At(pointer);
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) return base::ParseQuantity(value.get<std::string>()).value_or(0);
  return 0;
}
int64_t Integer(const kube::Object& object, std::string_view pointer) {
  const Json& value = object.At(pointer);
  return value.is_number() ? value.get<int64_t>() : 0;
}
const Json& List(const kube::Object& object, std::string_view pointer) {
  static const Json kEmpty = Json::array();
  const Json& value = object.At(pointer);
  return value.is_array() ? value : kEmpty;
}

PlanView TakePlan(const kube::Object& job) {
  PlanView plan;
  plan.epoch = Integer(job, "/status/plan/epoch");
  plan.planner = job.String("/status/plan/planner");
  plan.summary = job.String("/status/plan/summary");
  for (const Json& item : List(job, "/status/plan/stages")) {
    const kube::Object stage(item);
    plan.stages.push_back({stage.String("/layers"), stage.String("/pool"),
                           static_cast<int>(Integer(stage, "/units")), Number(stage, "/throughput")});
  }
  plan.servers = static_cast<int>(Integer(job, "/status/plan/servers"));
  plan.server_pool = job.String("/status/plan/serverPool");
  plan.throughput = Number(job, "/status/plan/throughput");
  plan.usd_per_hour = Number(job, "/status/plan/usdPerHour");
  plan.usd_total = Number(job, "/status/plan/usdTotal");
  for (const Json& item : List(job, "/status/plan/alternatives")) {
    const kube::Object other(item);
    plan.alternatives.push_back({other.String("/label"), Number(other, "/throughput"), Number(other, "/usdPerHour"),
                                 Number(other, "/usdTotal"), other.String("/reason")});
  }
  return plan;
}

}  // namespace

Snapshot TakeSnapshot(const kube::Object& job, const std::vector<kube::Object>& pools) {
  Snapshot view;
  view.phase = job.String("/status/phase");
  for (const Json& item : List(job, "/status/conditions")) {
    const kube::Object condition(item);
    ConditionView c{condition.String("/type"), condition.String("/status"), condition.String("/reason"),
                    condition.String("/message")};
    const bool yes = c.status == "True";
    if (c.type == "Complete" && yes) view.complete = true;
    if (c.type == "Failed" && yes) {
      view.failed = true;
      view.trouble = c.reason + ": " + c.message;
    }
    if (c.type == "Planned" && !yes && view.trouble.empty()) view.trouble = c.reason + ": " + c.message;
    view.conditions.push_back(std::move(c));
  }
  if (job.At("/status/plan").is_object()) view.plan = TakePlan(job);
  view.throughput = Number(job, "/status/observed/throughput");
  view.samples = Integer(job, "/status/observed/samples");
  view.samples_total = Integer(job, "/status/observed/samplesTotal");
  view.loss = Number(job, "/status/observed/loss");
  view.progress_percent = view.samples_total > 0
                              ? 100.0 * static_cast<double>(view.samples) / static_cast<double>(view.samples_total)
                              : 0;
  const Json& metrics = job.At("/status/observed/metrics");
  if (metrics.is_object()) {
    for (const auto& [name, value] : metrics.items()) {
      if (value.is_number()) view.metrics[name] = value.get<double>();
    }
  }
  view.spent_usd = Number(job, "/status/cost/spentUsd");
  view.saved_usd = Number(job, "/status/cost/savedUsd");
  view.restarts = static_cast<int>(Integer(job, "/status/restarts"));
  for (const Json& item : List(job, "/status/rescales")) {
    const kube::Object move(item);
    view.rescales.push_back({Integer(move, "/fromEpoch"), Integer(move, "/toEpoch"), move.String("/reason"),
                             Number(move, "/pauseSeconds"), move.String("/at"), move.At("/recovery") == true,
                             Integer(move, "/lostSteps")});
  }
  for (const kube::Object& pool : pools) {
    view.pools.push_back({pool.key().name, Number(pool, "/status/usdPerUnitHour"),
                          static_cast<int>(Integer(pool, "/status/units/used")),
                          static_cast<int>(Integer(pool, "/spec/limit"))});
  }
  return view;
}

}  // namespace medley::cli
