// Reconciler of TrainingJobs: finds the job in the cache and runs a JobPass over it. Thread-safe,
// as controllers ask.
#pragma once

#include <map>
#include <memory>
#include <stop_token>

#include "common/base/mutex.h"
#include "operator/controllers/job_deps.h"
#include "operator/runtime/reconciler.h"

namespace medley::ops {

class JobReconciler final : public Reconciler {
 public:
  // `stop` ends calls to the scheduling service and to coordinators.
  JobReconciler(JobDeps deps, std::stop_token stop) : deps_(std::move(deps)), stop_(std::move(stop)) {}
  absl::StatusOr<Result> Reconcile(const kube::Key& key) override;

 private:
  const JobDeps deps_;
  const std::stop_token stop_;
  base::Mutex mutex_;
  std::map<kube::Key, std::shared_ptr<JobMemory>> memories_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace medley::ops
