// A guard against stale caches: the creations that a controller has sent and its cache does not show yet (as in
// Kubernetes' controller_utils.go and kueue's expectations). Deletions carry a UID and need none. Thread-safe.
//
//   expectations.ExpectCreations(job, 3);   // then create; each failed create: CreationObserved(job)
//   informer: on_add -> ObserveAdd(owner, child)
//   if (!expectations.Satisfied(job)) write the status only: the cache is stale.
#pragma once

#include <absl/status/status.h>

#include <functional>
#include <map>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "kube/object.h"

namespace medley::ops {

class Expectations {
 public:
  explicit Expectations(base::Clock& clock, base::nanoseconds timeout = std::chrono::minutes(5));

  // Adds to the open expectations of `parent`.
  void ExpectCreations(const kube::Key& parent, int count);
  // The cache shows a new child, or a creation failed or was skipped. The count never drops below zero.
  void CreationObserved(const kube::Key& parent);
  // True when no expectation is open, or when the open ones are older than the timeout.
  bool Satisfied(const kube::Key& parent) const;
  // Drops all expectations of a parent that was deleted.
  void Forget(const kube::Key& parent);

  // For the handler of an informer. A child that is first seen terminating does not count as created.
  void ObserveAdd(const kube::Key& parent, const kube::Object& child);

 private:
  struct Open {
    int creations = 0;
    base::SteadyTime since;
  };
  base::Clock& clock_;
  const base::nanoseconds timeout_;
  mutable base::Mutex mutex_;
  std::map<kube::Key, Open> open_ ABSL_GUARDED_BY(mutex_);
};

// Calls `create(i)` for i in [0, count) in batches of 1, 2, 4, ... and stops after the first batch with a failure, so
// that a full quota costs one call instead of `count`. Makes at most `burst` calls.
struct SlowStartResult {
  int succeeded = 0;
  int tried = 0;        // the caller must also call CreationObserved for the count - tried skipped ones
  absl::Status status;  // the first error
};
SlowStartResult SlowStart(int count, const std::function<absl::Status(int)>& create, int burst = 500);

}  // namespace medley::ops
