// A guard against stale caches: what a controller has asked for and not yet seen (kube's
// controller_utils.go and kueue's expectations). Thread-safe.
//
//   expectations.ExpectCreations(job, 3);   // then create; each failed create: CreationObserved(job)
//   expectations.ExpectDeletion(job, uid);  // then delete; failed delete: DeletionObserved(job, uid)
//   informer: on_add -> CreationObserved(owner); on_delete, or deletionTimestamp -> DeletionObserved
//   if (!expectations.Satisfied(job)) only write status: the cache is behind.
#pragma once

#include <absl/status/status.h>

#include <functional>
#include <map>
#include <set>
#include <string>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "kube/object.h"

namespace medley::ops {

class Expectations {
 public:
  explicit Expectations(base::Clock& clock, base::nanoseconds timeout = std::chrono::minutes(5));

  // Adds to what is open.
  void ExpectCreations(const kube::Key& parent, int count);
  void ExpectDeletion(const kube::Key& parent, const std::string& child_uid);
  // A child appeared, or its creation failed or was skipped. Below zero stays zero.
  void CreationObserved(const kube::Key& parent);
  // A child is gone or going (each UID counts once), or its deletion failed.
  void DeletionObserved(const kube::Key& parent, const std::string& child_uid);
  // Nothing is open, or what is open is older than the timeout.
  bool Satisfied(const kube::Key& parent) const;
  // The parent is gone.
  void Forget(const kube::Key& parent);

  // For an informer's handler: a child first seen while terminating counts as deleted, not as created.
  void ObserveAdd(const kube::Key& parent, const kube::Object& child);
  void ObserveUpdate(const kube::Key& parent, const kube::Object& child);
  void ObserveDelete(const kube::Key& parent, const kube::Object& child);

 private:
  struct Open {
    int creations = 0;
    std::set<std::string> deletions;
    base::SteadyTime since;
  };
  base::Clock& clock_;
  const base::nanoseconds timeout_;
  mutable base::Mutex mutex_;
  std::map<kube::Key, Open> open_ ABSL_GUARDED_BY(mutex_);
};

// Calls `create(i)` for i in [0, count) in batches of 1, 2, 4, ... and stops after the first batch in which
// one failed: a quota that is full costs one call, not `count`. At most `burst` are tried.
struct SlowStartResult {
  int succeeded = 0;
  int tried = 0;        // count - tried were skipped: their expectations must be lowered too
  absl::Status status;  // the first error
};
SlowStartResult SlowStart(int count, const std::function<absl::Status(int)>& create, int burst = 500);

}  // namespace medley::ops
