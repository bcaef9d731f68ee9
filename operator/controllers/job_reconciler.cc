#include "operator/controllers/job_reconciler.h"

#include "common/base/status.h"
#include "operator/controllers/job_actions.h"
#include "operator/controllers/job_metrics_view.h"
#include "operator/controllers/job_units.h"
#include "operator/controllers/job_world.h"

namespace medley::ops {
namespace {

// Far more than a pass ever needs; a bound, so that an error in a decision cannot hold a worker forever.
constexpr int kMaxActions = 10000;

}  // namespace

absl::StatusOr<Result> JobReconciler::Reconcile(const kube::Key& key) {
  const kube::ObjectPtr object = deps_.stores.jobs.Get(key);
  if (object == nullptr) {
    deps_.links.Drop(key);
    deps_.calls.Drop(key);
    deps_.metrics.jobs().Remove(key);
    deps_.expectations.Forget(key);
    deps_.line.Leave(key);
    {
      base::MutexLock lock(mutex_);
      memories_.erase(key);
    }
    deps_.capacity.ReleaseJob(key);  // also of a job that this process has never looked at
    ReportFreed(deps_);
    return Result{};
  }
  if (!ManagedByThisOperator(*object)) return Result{};
  std::shared_ptr<lifecycle::Memory> memory;
  {
    base::MutexLock lock(mutex_);
    std::shared_ptr<lifecycle::Memory>& slot = memories_[key];
    if (slot == nullptr) slot = std::make_shared<lifecycle::Memory>();
    memory = slot;
  }
  return RunPass(object, *memory);
}

absl::StatusOr<Result> JobReconciler::RunPass(const kube::ObjectPtr& object, lifecycle::Memory& memory) {
  const bool first = memory.uid != object->uid();
  if (first && !memory.uid.empty()) {  // of an earlier job of this name
    deps_.capacity.Release(memory.uid);
    deps_.calls.Drop(object->key());
  }
  const int64_t turn = deps_.line.turn();
  const lifecycle::JobInput input = ReadJobInput(deps_, object);
  const lifecycle::World world = ReadWorld(deps_, object, memory, first);
  JobActions actions(deps_, input, world.leader_term, first);
  int carried_out = 0;
  const auto respond = [&](const lifecycle::Action& action) -> std::optional<lifecycle::Answer> {
    if (++carried_out > kMaxActions) return std::nullopt;
    return actions.Do(action);
  };
  lifecycle::Decision decision = lifecycle::Decide(input, world, memory, respond, deps_.options);
  if (decision.unanswered) {
    return base::Internal("the pass over job {} did not end after {} actions; the next would be: {}",
                          object->key().ToString(), kMaxActions, lifecycle::Describe(*decision.unanswered));
  }
  memory = std::move(decision.memory);
  for (const lifecycle::Effect& effect : decision.effects) actions.Do(effect);
  deps_.metrics.jobs().Set(object->key(), SnapshotOf(input, memory, decision.observed.get()), world.now);
  if (decision.line == lifecycle::LinePlace::kWaits) {
    deps_.line.Wait(object->key(), decision.turn.value_or(turn));
  } else if (decision.line == lifecycle::LinePlace::kNone) {
    deps_.line.Leave(object->key());
  }
  MEDLEY_RETURN_IF_ERROR(decision.status);
  deps_.calls.EndPass(object->key());
  return Result{decision.requeue_after};
}

}  // namespace medley::ops
