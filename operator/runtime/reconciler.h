// The interface that a controller calls for a key. An implementation reads caches, computes the whole desired state and
// writes the difference. It must work when called at any time, for any key, any number of times.
#pragma once

#include <absl/status/statusor.h>

#include <optional>

#include "common/base/clock.h"
#include "kube/object.h"

namespace medley::ops {

struct Result {
  std::optional<base::nanoseconds> requeue_after;
};

class Reconciler {
 public:
  virtual ~Reconciler() = default;
  // Never runs twice at the same time for one key; for different keys it runs on all workers of the controller.
  // An error is retried with exponential backoff unless it is Terminal. Must return OK when the object does not exist.
  virtual absl::StatusOr<Result> Reconcile(const kube::Key& key) = 0;
};

// Marks an error that a retry cannot fix. The controller counts and logs it and does not requeue the key.
absl::Status Terminal(const absl::Status& status);
bool IsTerminal(const absl::Status& status);

}  // namespace medley::ops
