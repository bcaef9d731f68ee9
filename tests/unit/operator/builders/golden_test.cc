// Objects of a job as data: tests/golden/operator/*.json. MEDLEY_GOLDEN_UPDATE=1 rewrites the
// files, for review.
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "common/base/file.h"
#include "common/base/testing/status_matchers.h"
#include "operator/api/resources.h"
#include "operator/builders/objects.h"
#include "operator/builders/pods.h"

namespace medley::ops {
namespace {

using kube::Json;

std::string GoldenPath(const std::string& name) {
  const char* source = std::getenv("MEDLEY_SOURCE_DIR");
  return std::string(source == nullptr ? "." : source) + "/tests/golden/operator/" + name + ".json";
}

void ExpectGolden(const std::string& name, const kube::Object& object) {
  const std::string text = object.json().dump(2) + "\n";
  if (std::getenv("MEDLEY_GOLDEN_UPDATE") != nullptr) {
    ASSERT_THAT(base::WriteFileAtomic(GoldenPath(name), text), base::IsOk());
  }
  const auto golden = base::ReadFile(GoldenPath(name));
  ASSERT_THAT(golden, base::IsOk());
  EXPECT_EQ(text, *golden) << name;
}

class GoldenTest : public testing::Test {
 protected:
  void SetUp() override {
    auto job = TrainingJob::FromObject(kube::Object(Json::parse(R"({
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
                   "containers": [{"env": [{"name": "MEDLEY_TOKEN", "value": "stolen"},
                                           {"name": "OMP_NUM_THREADS", "value": "2"}],
                                   "imagePullPolicy": "Always"}]}}}})")));
    ASSERT_THAT(job, base::IsOk());
    job_ = *job;
    auto pool =
        ResourcePool::FromObject(kube::Object(Json::parse(R"({"metadata": {"name": "v100-spot"},
      "spec": {"class": "GPU", "limit": 4, "price": {"usdPerUnitHour": "2.42"}, "nodeSelector": {"gpu": "v100"},
               "tolerations": [{"key": "gpu", "operator": "Exists"}],
               "unit": {"resources": {"cpu": "4", "nvidia.com/gpu": 1},
                        "env": [{"name": "SPEED", "value": "2"}]}}})")));
    ASSERT_THAT(pool, base::IsOk());
    pool_ = *pool;
    settings_ = {"registry/medley-worker:1", 7070, 9090};
  }

  TrainingJob job_;
  ResourcePool pool_;
  WorkerSettings settings_;
};

TEST_F(GoldenTest, Pods) {
  ExpectGolden("coordinator", CoordinatorPod(job_, settings_));
  ExpectGolden("trainer",
               MemberPod(job_, {"adult-1-v100-spot-0", Role::kTrainer, "v100-spot", 1, 0}, pool_,
                         settings_, "10.0.0.7:7070", 3));
  ExpectGolden("server", MemberPod(job_, {"adult-server-0", Role::kServer, "v100-spot", 0, 0},
                                   pool_, settings_, "10.0.0.7:7070", 3));
  ExpectGolden("profiler", ProfilerPod(job_, pool_, settings_));
}

TEST_F(GoldenTest, Others) {
  ExpectGolden("service", CoordinatorService(job_, settings_));
  ExpectGolden("spec-configmap", SpecConfigMap(job_));
  ExpectGolden("token-secret", TokenSecret(job_, "0123"));
  ExpectGolden("network-policy", JobNetworkPolicy(job_, settings_));
  ExpectGolden("profile-configmap", ProfileConfigMap("ml", "00ff", "v100-spot", "{}"));
}

TEST_F(GoldenTest, TheContractBeatsTheTemplate) {
  const kube::Object pod =
      MemberPod(job_, {"m", Role::kTrainer, "v100-spot", 0, 0}, pool_, settings_, "10.0.0.7:1", 1);
  EXPECT_EQ(pod.label(kRoleLabel), "trainer");
  EXPECT_EQ(pod.String("/spec/nodeSelector/gpu"), "v100");
  EXPECT_EQ(pod.String("/spec/nodeSelector/zone"), "a");
  EXPECT_EQ(pod.String("/spec/restartPolicy"), "Never");
  EXPECT_EQ(CoordinatorOf(pod), "10.0.0.7:1");
  std::set<std::string> names;
  for (const Json& entry : pod.At("/spec/containers/0/env")) {
    EXPECT_TRUE(names.insert(entry["name"]).second) << entry;
    EXPECT_NE(entry.value("value", ""), "stolen");
  }
  EXPECT_TRUE(names.contains("SPEED"));
}

TEST_F(GoldenTest, TheTokenSurvivesTheSecret) {
  EXPECT_EQ(TokenOf(TokenSecret(job_, "s3cret")), "s3cret");
}

}  // namespace
}  // namespace medley::ops
