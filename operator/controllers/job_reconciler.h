// Reconciler of TrainingJobs: reads a job and its world from caches, lets operator/lifecycle decide, and carries the
// decisions out. Thread-safe, as controllers need it.
#pragma once

#include <map>
#include <memory>

#include "common/base/mutex.h"
#include "operator/controllers/job_deps.h"
#include "operator/lifecycle/memory.h"
#include "operator/runtime/reconciler.h"

namespace medley::ops {

class JobReconciler final : public Reconciler {
 public:
  explicit JobReconciler(JobDeps deps) : deps_(std::move(deps)) {}
  absl::StatusOr<Result> Reconcile(const kube::Key& key) override;

 private:
  absl::StatusOr<Result> RunPass(const kube::ObjectPtr& object, lifecycle::Memory& memory);

  const JobDeps deps_;
  base::Mutex mutex_;
  // Each is used by one pass at a time: a controller never reconciles a key twice at once.
  std::map<kube::Key, std::shared_ptr<lifecycle::Memory>> memories_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace medley::ops
