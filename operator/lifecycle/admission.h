// Admission: whether the job's spec can be read and makes sense, before anything runs for it.
#pragma once

#include <absl/status/status.h>

#include <optional>
#include <string>
#include <vector>

#include "kube/object.h"
#include "operator/api/training_job.h"

namespace medley::ops::lifecycle {

class Pass;

// A TrainingJob as read and checked, once per pass.
struct JobInput {
  kube::ObjectPtr object;  // never null
  // Absent: a field of the spec has a wrong type or form. Functions that need the spec take a TrainingJob, so that they
  // cannot run without one.
  std::optional<TrainingJob> job;
  std::string profile_hash;              // of the model; empty: the model is invalid
  std::vector<std::string> problems;     // empty: the spec is valid
  Reason reason = Reason::kInvalidSpec;  // of the condition Planned, when there are problems
};

// `admitted_spec`: the spec when the job's first objects were created, most of whose fields may not change; null
// before. Pure.
JobInput ReadJob(kube::ObjectPtr object, const kube::Json& admitted_spec);

// Reports the problems in the condition Planned.
void RefuseSpec(Pass& pass, const JobInput& input);
// Withdraws that report once the spec is valid: a job that is suspended, or waits for its turn, sets no other.
void AcceptSpec(Pass& pass);

// Whether the job has the operator's finalizer, which keeps a deleted job until its pods have been deleted.
bool HasFinalizer(const kube::Object& job);
absl::Status EnsureFinalizer(Pass& pass);
absl::Status RemoveFinalizer(Pass& pass);

}  // namespace medley::ops::lifecycle
