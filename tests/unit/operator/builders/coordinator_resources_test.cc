#include "operator/builders/coordinator_resources.h"

#include <gtest/gtest.h>

#include "tests/unit/operator/builders/sample_job.h"

namespace medley::ops {
namespace {

using kube::Json;

Json Filled(const char* resources) {
  Json container = {{"name", "worker"}, {"resources", Json::parse(resources)}};
  FillCoordinatorResources(container);
  return container["resources"];
}

TEST(CoordinatorResourcesTest, DefaultsAreRequestsAndLimits) {
  const Json defaults = {{"requests", {{"cpu", "100m"}, {"memory", "128Mi"}}},
                         {"limits", {{"cpu", "1"}, {"memory", "1Gi"}}}};
  EXPECT_EQ(Filled("{}"), defaults);
  EXPECT_EQ(Filled("null"), defaults);
  EXPECT_EQ(Filled(R"({"requests": null})"), defaults);
}

TEST(CoordinatorResourcesTest, TheTemplateIsKeptAndTheRestFitsIt) {
  EXPECT_EQ(Filled(R"({"requests": {"memory": "4Gi", "cpu": 2}})"),
            Json::parse(R"({"requests": {"memory": "4Gi", "cpu": 2}, "limits": {"memory": "4Gi", "cpu": 2}})"));
  EXPECT_EQ(Filled(R"({"limits": {"memory": "64Mi", "cpu": "50m", "example.com/x": 1}})"),
            Json::parse(R"({"requests": {"memory": "64Mi", "cpu": "50m"},
                            "limits": {"memory": "64Mi", "cpu": "50m", "example.com/x": 1}})"));
}

TEST(CoordinatorResourcesTest, AnInvalidListIsLeftToTheApiServer) {
  EXPECT_EQ(Filled(R"({"limits": "many"})")["limits"], "many");
}

// A ResourceQuota on limits.cpu and limits.memory admits only pods in which every container has both.
TEST(CoordinatorResourcesTest, EveryPodOfAJobHasTheLimitsThatAQuotaAsksFor) {
  Json pool = SamplePool().object.json();
  pool["spec"]["unit"]["resources"] = {{"cpu", "4"}, {"memory", "8Gi"}};
  const auto read = ResourcePool::FromObject(kube::Object(pool));
  ASSERT_THAT(read, base::IsOk());
  for (const kube::Object& pod : EachKindOfPod(ReadJob(SampleJobJson()), *read, {"i", 7070, 0})) {
    for (const Json& container : pod.At("/spec/containers")) {
      for (const char* list : {"requests", "limits"}) {
        for (const char* name : {"cpu", "memory"}) {
          EXPECT_TRUE(container["resources"][list].contains(name)) << pod.key().name << " " << list << "." << name;
        }
      }
    }
  }
}

}  // namespace
}  // namespace medley::ops
