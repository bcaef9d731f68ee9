// Reconciler of ResourcePools: price, units, and the conditions Priced, Available and Profiled. Thread-safe, as
// controllers need it.
#pragma once

#include <set>
#include <string>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "kube/cache/store.h"
#include "kube/client.h"
#include "operator/api/pool_status.h"
#include "operator/api/resource_pool.h"
#include "operator/controllers/job_deps.h"
#include "operator/planning/scheduler_client.h"
#include "operator/runtime/reconciler.h"
#include "operator/telemetry/operator_metrics.h"

namespace medley::ops {

class PoolReconciler final : public Reconciler {
 public:
  explicit PoolReconciler(JobDeps deps) : deps_(std::move(deps)) {}
  absl::StatusOr<Result> Reconcile(const kube::Key& key) override;

 private:
  void Price(const ResourcePool& pool, PoolStatus& status) const;
  // Returns when it must be looked at again, at the latest; nullopt: after a change.
  std::optional<base::nanoseconds> Outages(const ResourcePool& pool, PoolStatus& status) const;
  // The same. Only pools of spot machines.
  std::optional<base::nanoseconds> Lifetimes(const ResourcePool& pool, PoolStatus& status);
  void Available(const ResourcePool& pool, PoolStatus& status) const;
  void Units(const ResourcePool& pool, PoolStatus& status) const;
  void Profiles(const ResourcePool& pool, PoolStatus& status) const;
  // Warns once when jobs of another operator use the pool: neither sees what the other has reserved.
  void CheckOwner(const ResourcePool& pool);

  const JobDeps deps_;
  UnitLosses losses_;
  base::Mutex mutex_;
  std::set<std::string> shared_ ABSL_GUARDED_BY(mutex_);  // pools of which a warning was logged
};

}  // namespace medley::ops
