// The beginning of every object that belongs to a job. Internal to operator/builders.
#pragma once

#include <string>

#include "operator/api/resources.h"
#include "operator/api/training_job.h"

namespace medley::ops {

inline kube::Object Owned(const TrainingJob& job, const kube::Resource& resource, const std::string& name) {
  kube::Object object(resource, {job.key().ns, name});
  object.SetLabel(kJobNameLabel, job.name());
  object.SetLabel("app.kubernetes.io/managed-by", "medley-operator");
  object.SetController(job.object).IgnoreError();  // cannot fail: a new object has no other controller
  return object;
}

}  // namespace medley::ops
