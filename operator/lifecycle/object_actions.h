// Actions (actions.h) on objects of the API server. Values.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kube/object.h"
#include "operator/records/plan_record.h"

namespace medley::ops::lifecycle {

// Creates the object unless one of its name exists.
struct EnsureObject {
  struct Outcome {
    absl::StatusOr<kube::Object> object;  // that exists now; it may have another owner
    bool created = false;
  };
  using Answer = Outcome;
  kube::Resource resource;
  kube::Object object;
  bool probably_exists = false;  // true: read it first, which saves the attempt to create it
};

// Creates the object, and reads nothing. Errors: AlreadyExists: one of its name exists, whoever owns it.
struct CreateObject {
  using Answer = absl::StatusOr<kube::Object>;
  kube::Resource resource;
  kube::Object object;
};

// Server-side apply. Answer: the object that results.
struct ApplyObject {
  using Answer = absl::StatusOr<kube::Object>;
  kube::Resource resource;
  kube::Object object;
};

struct DeleteObject {
  using Answer = absl::Status;
  kube::Resource resource;
  kube::Key key;
  std::optional<std::string> uid;  // precondition
  std::string propagation_policy;
};

// A merge patch of the TrainingJob.
struct PatchJob {
  using Answer = absl::Status;
  kube::Json patch;
  std::string subresource;  // "" or "status"
};

// Creates pods in growing batches and stops after the first batch with a failure. A name that is taken is not a
// failure.
struct CreatePods {
  struct Outcomes {
    std::vector<absl::Status> tried;  // of the first pods; the others were not tried
  };
  using Answer = Outcomes;
  std::vector<kube::Object> pods;
  // Keeps members off nodes with a notice: a pod that tolerates every taint could be bound to them.
  bool avoid_noticed_nodes = false;
};

// Deletes in order and stops at the first failure. A pod that has been deleted already, or whose name belongs to a
// newer pod, is a success.
struct DeletePods {
  struct Outcome {
    std::set<std::string> deleted;  // UIDs
    absl::Status status;
  };
  using Answer = Outcome;
  struct Target {
    kube::Key key;
    std::string uid;
  };
  std::vector<Target> pods;
};

// Writes ConfigMap JOB-plan if it still has the version that this operator has read or written.
struct SavePlan {
  struct Outcome {
    absl::Status status;
    std::string version;  // resourceVersion of the ConfigMap that exists now; empty: not known
    // True: another operator has written it, and `status` is an error. `plan_of_other` is then that operator's plan, or
    // null when it is unreadable.
    bool overtaken = false;
    std::shared_ptr<const PlanRecord> plan_of_other;
    // Why what another client had written there was not believed, and was replaced; a clause. Empty: nothing was.
    std::string refused = {};
  };
  using Answer = Outcome;
  kube::Object map;
  std::string version;  // empty: none exists as far as this operator knows
};

}  // namespace medley::ops::lifecycle
