// The credentials of a job are files of its pods, and in no environment.
#include "operator/builders/credentials.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace medley::ops
