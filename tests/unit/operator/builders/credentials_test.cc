// The credentials of a job are files of its pods, and in no environment.
#include "operator/builders/credentials.h"

#include <gtest/gtest.h>

#include "operator/builders/worker_env.h"
#include "tests/unit/operator/builders/sample_job.h"

namespace medley::ops {
namespace {

using kube::Json;

TEST(CredentialsTest, AreAFileForTheOwnGroupOnlyInPodsThatTalk) {
  const TrainingJob job = ReadJob(SampleJobJson());
  for (const kube::Object& pod : EachKindOfPod(job, SamplePool(), WorkerSettings())) {
    SCOPED_TRACE(pod.key().name);
    EXPECT_EQ(pod.json().dump().find("secretKeyRef"), std::string::npos);
    const bool talks = pod.label("medley.dev/role") != "profiler";
    int volumes = 0, mounts = 0;
    for (const Json& volume : pod.At("/spec/volumes")) {
      if (!volume.contains("secret")) continue;
      ++volumes;
      EXPECT_EQ(volume["secret"]["secretName"], "adult-token");
      EXPECT_EQ(volume["secret"]["defaultMode"], 0440);
    }
    for (const Json& mount : pod.At("/spec/containers")[0]["volumeMounts"]) {
      if (mount["mountPath"] != kCredentialsFolder) continue;
      ++mounts;
      EXPECT_EQ(mount["readOnly"], true);
    }
    EXPECT_EQ(volumes, talks ? 1 : 0);
    EXPECT_EQ(mounts, talks ? 1 : 0);
    EXPECT_EQ(pod.At("/spec/securityContext/seccompProfile/type"), "RuntimeDefault");
    EXPECT_EQ(pod.At("/spec/containers")[0]["securityContext"]["readOnlyRootFilesystem"], true);
    EXPECT_EQ(pod.At("/spec/automountServiceAccountToken"), false);
  }
}

TEST(CredentialsTest, ATemplateCannotReplaceThem) {
  Json json = SampleJobJson();
  json["spec"]["template"]["spec"]["volumes"] = Json::array({{{"name", "credentials"}, {"emptyDir", Json::object()}}});
  json["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] =
      Json::array({{{"name", "tmp"}, {"mountPath", kCredentialsFolder}}});
  const kube::Object pod = CoordinatorPod(ReadJob(json), WorkerSettings());
  for (const Json& volume : pod.At("/spec/volumes")) {
    if (volume["name"] == "credentials") {
      EXPECT_EQ(volume["secret"]["secretName"], "adult-token");
    }
  }
  for (const Json& mount : pod.At("/spec/containers")[0]["volumeMounts"]) {
    if (mount["mountPath"] == kCredentialsFolder) {
      EXPECT_EQ(mount["name"], "credentials");
    }
  }
}

TEST(CredentialsTest, PodsThatTalkMountTheSecretOfThisNameAndTakeNoOtherCredentials) {
  Json json = SampleJobJson();
  json["spec"]["template"]["spec"]["containers"][0]["env"] =
      Json::array({{{"name", kFingerprintVariable}, {"value", "mine"}}});
  for (kube::Object& pod : EachKindOfPod(ReadJob(json), SamplePool(), WorkerSettings())) {
    SCOPED_TRACE(pod.key().name);
    MountCredentials("adult-token-0123", "0123", pod);
    std::string mounted, expected;
    for (const Json& volume : pod.At("/spec/volumes")) {
      if (volume.contains("secret")) mounted = volume["secret"]["secretName"];
    }
    int variables = 0;
    for (const Json& variable : pod.At("/spec/containers")[0]["env"]) {
      if (variable["name"] == kFingerprintVariable) {
        expected = variable["value"];
        ++variables;
      }
    }
    const bool talks = pod.label("medley.dev/role") != "profiler";
    EXPECT_EQ(mounted, talks ? "adult-token-0123" : "");
    if (talks) {
      EXPECT_EQ(expected, "0123");
      EXPECT_EQ(variables, 1);
    }
  }
}

TEST(CredentialsTest, TheNameOfTheSecretFollowsFromItsContents) {
  const std::string name = NameOfSecret("adult", {"a", "certificate", "key"});
  EXPECT_EQ(name, "adult-token-" + FingerprintOf({"a", "certificate", "key"}));
  EXPECT_EQ(name, NameOfSecret("adult", {"a", "the same CA, signed again", "key"}));
  EXPECT_NE(name, NameOfSecret("adult", {"b", "certificate", "key"}));
  EXPECT_NE(name, NameOfSecret("adult", {"a", "certificate", "another"}));
  EXPECT_NE(FingerprintOf({"ab", "", ""}), FingerprintOf({"a", "certificate", "b"}));
}

}  // namespace
}  // namespace medley::ops
