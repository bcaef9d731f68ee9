// Training jobs of other controllers, as far as a recommendation needs them: Kubernetes Jobs, JobSets (v1alpha2) and
// Kubeflow TrainJobs (Trainer v2, v1alpha1). Immutable values; pure, thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <array>
#include <map>
#include <optional>
#include <string>

#include "kube/object.h"

namespace medley::ops::recommend {

enum class ForeignKind { kJob, kJobSet, kTrainJob };
inline constexpr std::array kForeignKinds = {ForeignKind::kJob, ForeignKind::kJobSet, ForeignKind::kTrainJob};

kube::Resource ResourceOf(ForeignKind kind);

// A job with this label, "true", asks for a recommendation while it is suspended.
inline constexpr char kRecommendLabel[] = "medley.dev/recommend";
// Names the replicated job of a JobSet or TrainJob whose pods are the nodes. Default: the only one; of a TrainJob
// "node".
inline constexpr char kTargetAnnotation[] = "medley.dev/target";

struct ForeignJob {
  ForeignKind kind = ForeignKind::kJob;
  kube::Key key;
  std::string uid;
  bool wanted = false;     // has the label, and is not being deleted
  bool suspended = false;  // by its spec
  bool finished = false;
  bool queued = false;                               // Kueue admits it, so nobody else may resume it
  std::optional<int> nodes;                          // that its spec asks for; nullopt: the spec leaves it open
  bool sizable = false;                              // its controller lets the number of nodes change
  std::string target;                                // the replicated job; empty for a Job
  int target_index = 0;                              // of it among spec.replicatedJobs, of a JobSet
  std::map<std::string, std::string> node_selector;  // the user's own, of the nodes
  kube::Json tolerations = kube::Json::array();      // likewise; not of a TrainJob's runtime
};

// Errors: InvalidArgument, a sentence that names the field: several replicated jobs and none named, a wrong type.
absl::StatusOr<ForeignJob> ReadForeignJob(ForeignKind kind, const kube::Object& object);

}  // namespace medley::ops::recommend
