// A TrainingJob as the operator reads it: goals, planner, pools, elasticity and run policy, which are made from the
// CRD's schema (job_policies.h). model::JobSpec (common/model/job_spec.h) holds the model, the data and the training
// parameters. Immutable values.
#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kube/object.h"
#include "operator/api/job_policies.h"
#include "operator/api/pod_template.h"

namespace medley::ops {

// A Kubernetes volume source, as written in the manifest, and the path at which pods mount it.
struct VolumeMount {
  kube::Json source;  // {"persistentVolumeClaim": {...}}
  std::string mount_path;
};

// spec.storage: how pods reach object stores.
struct StorageAccess {
  std::string secret;  // of the job's namespace, with the keys; empty: none
  std::string endpoint;
  std::string region;
  bool path_style = false;
  std::string ca_bundle;  // PEM
};

// spec.program, as far as the operator knows it. model::ProgramSpec has all of it.
struct TrainedProgram {
  std::string image;             // of trainers and profilers; empty: the operator's image of workers
  std::vector<int> legal_units;  // empty: any number
  bool measures_sizes = true;    // a profiler also runs the processes of several units
};

struct TrainingJob {
  kube::Object object;                    // as read; never changed
  kube::Json spec;                        // with defaults
  std::optional<TrainedProgram> program;  // instead of a model
  Objective objective;
  PlannerChoice planner;
  std::vector<std::string> pools;  // empty: every pool that the namespace may use
  std::string server_pool;         // empty: the cheapest CPU pool
  Elasticity elasticity;
  RunPolicy run_policy;
  std::optional<VolumeMount> data_volume;
  std::optional<VolumeMount> checkpoint_volume;
  std::string checkpoint_uri;  // s3://bucket/prefix or gs://bucket/prefix, instead of a volume; empty: none
  StorageAccess storage;
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
  // Whether checkpoints, the journal and the model are kept anywhere.
  bool keeps_checkpoints() const { return checkpoint_volume.has_value() || !checkpoint_uri.empty(); }

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
