// What a controller runs for a key. An implementation reads caches, computes the whole desired state and
// writes the difference; it may be called at any time, for any key, any number of times.
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
  // Never called twice at once for one key; for different keys from as many threads as the controller has.
  // An error: tried again with growing waits, unless Terminal. An object that is gone is success.
  virtual absl::StatusOr<Result> Reconcile(const kube::Key& key) = 0;
};

// Marks an error that trying again cannot cure: it is counted and logged, and the key waits for a change.
absl::Status Terminal(const absl::Status& status);
bool IsTerminal(const absl::Status& status);

}  // namespace medley::ops
