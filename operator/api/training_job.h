// A TrainingJob as the operator reads it: goals, planner, pools, elasticity and run policy. model::JobSpec
// (common/model/job_spec.h) holds the model, the data and the training parameters. Immutable values.
#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/model/synchronisation.h"
#include "kube/object.h"
#include "operator/api/pod_template.h"

namespace medley::ops {

// spec.objective. A goal that the user did not set is 0.
struct Objective {
  double min_throughput = 0;    // samples/s
  double deadline_seconds = 0;  // from startTime
  double budget_usd = 0;
  double max_usd_per_hour = 0;
  bool fastest = false;             // the fewest seconds to the end within the bounds above, instead of the least USD
  bool least_usd_per_hour = false;  // instead of the least USD; not with fastest
  bool operator==(const Objective&) const = default;
};

struct PlannerChoice {
  std::string name = "auto";
  double time_budget_seconds = 5;
  model::ScheduleKind schedule = model::ScheduleKind::kSync1F1B;
  int max_staleness = 0;  // 0: no limit
  model::Synchronisation sync;
  bool operator==(const PlannerChoice&) const = default;
};

struct Elasticity {
  bool enabled = true;
  int min_units = 1;
  int max_units = 64;
  bool on_price_change = true;
  double min_saving = 0.10;  // share of the remaining cost
  double cooldown_seconds = 300;
  bool operator==(const Elasticity&) const = default;
};

enum class CleanPodPolicy { kAll, kRunning, kNone };
enum class PodGroupChoice { kAuto, kNone, kSchedulerPlugins, kVolcano };

struct RunPolicy {
  bool suspend = false;
  int backoff_limit = 6;
  std::optional<int64_t> active_deadline_seconds;
  std::optional<int64_t> ttl_seconds_after_finished;
  CleanPodPolicy clean_pod_policy = CleanPodPolicy::kRunning;
  std::string managed_by = "medley.dev/operator";
  std::string queue;
  std::string priority_class;
  std::string scheduler_name;  // empty: the cluster's default
  PodGroupChoice pod_group = PodGroupChoice::kAuto;
  bool disruption_budget = true;
  int max_unavailable = 1;  // the most pods that may be evicted at the same time
};

// A Kubernetes volume source, as written in the manifest, and the path at which pods mount it.
struct VolumeMount {
  kube::Json source;  // {"persistentVolumeClaim": {...}}
  std::string mount_path;
};

struct TrainingJob {
  kube::Object object;  // as read; never changed
  kube::Json spec;      // with defaults
  Objective objective;
  PlannerChoice planner;
  std::vector<std::string> pools;  // empty: every pool that the namespace may use
  std::string server_pool;         // empty: the cheapest CPU pool
  Elasticity elasticity;
  RunPolicy run_policy;
  std::optional<VolumeMount> data_volume;
  std::optional<VolumeMount> checkpoint_volume;
  PodTemplate pod_template;  // for every pod
  // For the pods of one role, over the one for every pod. Profilers measure what trainers do, and take theirs.
  PodTemplate coordinator_template;
  PodTemplate server_template;
  PodTemplate trainer_template;
  uint64_t seed = 1;
  int epochs = 1;
  int batch_size = 512;
  int micro_batches = 4;
  double profiling_wait_seconds = 120;  // for profiles of more pools, once a first plan is feasible

  kube::Key key() const { return object.key(); }
  const std::string& name() const { return name_; }
  bool managed_by_us() const;

  // Applies the defaults, then reads the spec. Errors: InvalidArgument that names the first field of a wrong type or
  // form, or outside of its bounds (bounds.h), by its path.
  static absl::StatusOr<TrainingJob> FromObject(const kube::Object& object);

 private:
  std::string name_;
};

// True when spec.runPolicy.managedBy is absent or names this operator; the rest of the spec may be invalid. The
// operator does not read, validate or write the jobs of another controller.
bool ManagedByThisOperator(const kube::Object& job);

// Applies the defaults of the CRD's schema. Needed for manifests that no API server has read, and for API servers that
// do not apply defaults.
void ApplyJobDefaults(kube::Json& spec);

}  // namespace medley::ops
