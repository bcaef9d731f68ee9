// Suspended jobs of other controllers, as users write them, for tests.
#pragma once

#include "kube/object.h"
#include "operator/recommend/foreign_job.h"

namespace medley::ops::recommend {

inline kube::Json Metadata() {
  return {{"name", "train"},
          {"namespace", "team"},
          {"uid", "u-1"},
          {"resourceVersion", "7"},
          {"labels", {{kRecommendLabel, "true"}}},
          {"annotations", kube::Json::object()}};
}

inline kube::Object SuspendedJob(int nodes = 2) {
  return kube::Object(kube::Json{{"apiVersion", "batch/v1"},
                                 {"kind", "Job"},
                                 {"metadata", Metadata()},
                                 {"spec",
                                  {{"suspend", true},
                                   {"completionMode", "Indexed"},
                                   {"parallelism", nodes},
                                   {"completions", nodes},
                                   {"template", {{"spec", {{"containers", kube::Json::array()}}}}}}}});
}

inline kube::Object SuspendedJobSet() {
  const kube::Json pods = {{"spec", {{"nodeSelector", {{"disk", "ssd"}}}, {"containers", kube::Json::array()}}}};
  const auto job = [&](const char* name, int replicas, int parallelism) {
    return kube::Json{{"name", name},
                      {"replicas", replicas},
                      {"template", {{"spec", {{"parallelism", parallelism}, {"template", pods}}}}}};
  };
  return kube::Object(
      kube::Json{{"apiVersion", "jobset.x-k8s.io/v1alpha2"},
                 {"kind", "JobSet"},
                 {"metadata", Metadata()},
                 {"spec", {{"suspend", true}, {"replicatedJobs", {job("driver", 1, 1), job("workers", 2, 4)}}}}});
}

inline kube::Object SuspendedTrainJob() {
  return kube::Object(kube::Json{{"apiVersion", "trainer.kubeflow.org/v1alpha1"},
                                 {"kind", "TrainJob"},
                                 {"metadata", Metadata()},
                                 {"spec", {{"suspend", true}, {"runtimeRef", {{"name", "torch-distributed"}}}}}});
}

}  // namespace medley::ops::recommend
