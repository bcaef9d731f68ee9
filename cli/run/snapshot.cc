#include "cli/run/snapshot.h"

#include "operator/api/pool_status.h"
#include "operator/api/resource_pool.h"

namespace medley::cli {
namespace {

std::string Problem(const ops::Conditions& conditions) {
  const ops::Condition* failed = conditions.Find(ops::kFailedCondition);
  if (failed != nullptr && failed->status == ops::ConditionStatus::kTrue)
    return failed->reason + ": " + failed->message;
  const ops::Condition* planned = conditions.Find(ops::kPlannedCondition);
  if (planned != nullptr && planned->status != ops::ConditionStatus::kTrue)
    return planned->reason + ": " + planned->message;
  return "";
}

PoolView TakePool(const kube::Object& object) {
  const ops::PoolStatus status = ops::PoolStatus::FromJson(object.At("/status"));
  const absl::StatusOr<ops::ResourcePool> pool = ops::ResourcePool::FromObject(object);
  return {object.key().name, status.usd_per_unit_hour, status.units.used, pool.ok() ? pool->limit : status.units.limit};
}

}  // namespace

Snapshot TakeSnapshot(const kube::Object& job, const std::vector<kube::Object>& pools) {
  ops::JobStatus status = ops::JobStatus::FromJson(job.At("/status"));
  Snapshot view;
  view.phase = status.Phase();
  view.of_program = job.At("/spec/program").is_object();
  view.rescaling = status.conditions.IsTrue(ops::kRescalingCondition);
  view.complete = status.conditions.IsTrue(ops::kCompleteCondition);
  view.failed = status.conditions.IsTrue(ops::kFailedCondition);
  const ops::Condition* complete = status.conditions.Find(ops::kCompleteCondition);
  if (view.complete && complete->Has(ops::Reason::kStoppedEarly)) view.stopped_early = complete->message;
  view.problem = Problem(status.conditions);
  if (view.failed) view.failure = status.conditions.Find(ops::kFailedCondition)->reason;
  const ops::Condition* planned = status.conditions.Find(ops::kPlannedCondition);
  if (planned != nullptr && planned->status == ops::ConditionStatus::kFalse) view.refusal = planned->reason;
  view.plan = std::move(status.plan);
  view.observed = std::move(status.observed).value_or(ops::ObservedStatus());
  view.cost = status.cost.value_or(ops::CostStatus());
  view.goodput = std::move(status.goodput);
  view.rescales = std::move(status.rescales);
  if (view.observed.samples_total > 0) {
    view.progress_percent =
        100.0 * static_cast<double>(view.observed.samples) / static_cast<double>(view.observed.samples_total);
  }
  for (const kube::Object& pool : pools) view.pools.push_back(TakePool(pool));
  return view;
}

}  // namespace medley::cli
