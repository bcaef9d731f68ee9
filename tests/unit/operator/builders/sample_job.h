// A job and a pool that set every field that the builders read.
#pragma once

#include <gtest/gtest.h>

#include "common/base/testing/status_matchers.h"
#include "operator/builders/pods.h"

namespace medley::ops {

inline kube::Json SampleJobJson() {
  return kube::Json::parse(R"({
      "apiVersion": "medley.dev/v1alpha1", "kind": "TrainingJob",
      "metadata": {"name": "adult", "namespace": "ml", "uid": "u-1"},
      "spec": {"model": {"name": "ctrdnn", "parameters": {"hidden": [400, 400, 400]}},
        "data": {"train": {"uri": "file:///data/adult.csv", "format": "csv"},
                 "schema": {"label": {"column": 14, "positive": ">50K"}, "categorical": [1, 3], "numeric": [0, 2]},
                 "volume": {"persistentVolumeClaim": {"claimName": "datasets"}, "mountPath": "/data"}},
        "checkpoint": {"volume": {"persistentVolumeClaim": {"claimName": "ck"}, "mountPath": "/checkpoints/"}},
        "runPolicy": {"schedulingPolicy": {"priorityClass": "high", "queue": "ads"}},
        "template": {"metadata": {"labels": {"team": "ads", "medley.dev/role": "no"}, "annotations": {"a": "b"}},
          "spec": {"tolerations": [{"key": "team", "operator": "Exists"}],
                   "nodeSelector": {"zone": "a", "gpu": "wrong"},
                   "containers": [{"env": [{"name": "MEDLEY_CREDENTIALS_DIR", "value": "stolen"},
                                           {"name": "OMP_NUM_THREADS", "value": "2"}],
                                   "imagePullPolicy": "Always"}]}}}})");
}

inline TrainingJob ReadJob(const kube::Json& json) {
  const auto job = TrainingJob::FromObject(kube::Object(json));
  EXPECT_THAT(job, base::IsOk());
  return job.ok() ? *job : TrainingJob();
}

inline ResourcePool SamplePool() {
  const auto pool = ResourcePool::FromObject(kube::Object(kube::Json::parse(R"({"metadata": {"name": "v100-spot"},
      "spec": {"class": "GPU", "limit": 4, "price": {"usdPerUnitHour": "2.42"}, "nodeSelector": {"gpu": "v100"},
               "tolerations": [{"key": "gpu", "operator": "Exists"}],
               "unit": {"resources": {"cpu": "4", "nvidia.com/gpu": 1},
                        "env": [{"name": "SPEED", "value": "2"}]}}})")));
  EXPECT_THAT(pool, base::IsOk());
  return pool.ok() ? *pool : ResourcePool();
}

// One pod of each kind.
inline std::vector<kube::Object> EachKindOfPod(const TrainingJob& job, const ResourcePool& pool,
                                               const WorkerSettings& settings) {
  return {
      CoordinatorPod(job, settings),
      MemberPod(job, {"adult-1-v100-spot-0", Role::kTrainer, "v100-spot", 1, 0}, pool, settings, "10.0.0.7:7070", 3),
      MemberPod(job, {"adult-server-0", Role::kServer, "v100-spot", 0, 0}, pool, settings, "10.0.0.7:7070", 3),
      ProfilerPod(job, pool, settings)};
}

}  // namespace medley::ops
