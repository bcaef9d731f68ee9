#include "operator/controllers/job_reconciler.h"

#include "operator/controllers/job_pass.h"

namespace medley::ops {

absl::StatusOr<Result> JobReconciler::Reconcile(const kube::Key& key) {
  const kube::ObjectPtr object = deps_.stores.jobs.Get(key);
  if (object == nullptr) {
    deps_.links.Drop(key);
    deps_.metrics.jobs().Remove(key);
    deps_.expectations.Forget(key);
    base::MutexLock lock(mutex_);
    memories_.erase(key);
    return Result{};
  }
  if (!ManagedByThisOperator(*object)) return Result{};
  std::shared_ptr<JobMemory> memory;
  {
    base::MutexLock lock(mutex_);
    std::shared_ptr<JobMemory>& slot = memories_[key];
    if (slot == nullptr) slot = std::make_shared<JobMemory>();
    memory = slot;
  }
  return JobPass(deps_, object, *memory, stop_).Run();
}

}  // namespace medley::ops
