#include "cli/download/reader_pod.h"

#include <gmock/gmock.h>

#include "common/base/testing/status_matchers.h"

namespace medley::cli {
namespace {

using base::StatusIs;
using kube::Json;
using testing::HasSubstr;

kube::Object Job(const char* checkpoint) {
  Json json = Json::parse(R"({
    "apiVersion": "medley.dev/v1alpha1", "kind": "TrainingJob",
    "metadata": {"name": "adult", "namespace": "team", "uid": "u-1"},
    "spec": {"model": {"name": "logistic"}, "data": {"train": {"uri": "file:///data/a.csv", "format": "csv"},
               "schema": {"label": {"column": 2}, "numeric": [1]}},
             "training": {}, "objective": {"minThroughput": 1}}})");
  if (*checkpoint != '\0') json["spec"]["checkpoint"] = Json::parse(checkpoint);
  return kube::Object(json);
}

constexpr char kVolume[] = R"({"volume": {"persistentVolumeClaim": {"claimName": "models"}, "mountPath": "/ck/"}})";

kube::Object Coordinator() {
  return kube::Object(Json::parse(R"({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "adult-coordinator"},
    "spec": {"securityContext": {"runAsUser": 7}, "imagePullSecrets": [{"name": "s"}],
      "tolerations": [{"key": "t"}], "serviceAccountName": "powerful",
      "containers": [{"name": "sidecar", "image": "proxy:1"},
                     {"name": "worker", "image": "registry.example/worker:2", "imagePullPolicy": "Always",
                      "resources": {"requests": {"cpu": "8"}}, "securityContext": {"readOnlyRootFilesystem": true}}]}})"));
}

TEST(ReaderPodTest, ReadsTheJobsVolumeAndNothingElse) {
  const auto pod = MakeReaderPod({Job(kVolume), Coordinator(), "", "adult-download-1", "secret"});
  ASSERT_THAT(pod, base::IsOk());
  EXPECT_EQ(pod->key(), (kube::Key{"team", "adult-download-1"}));
  const Json& spec = pod->At("/spec");
  ASSERT_EQ(spec["containers"].size(), 1U) << "without the coordinator's sidecars";
  const Json& container = spec["containers"][0];
  EXPECT_EQ(container["image"], "registry.example/worker:2");
  EXPECT_EQ(container["imagePullPolicy"], "Always");
  EXPECT_EQ(container["args"], Json({"--role=files"}));
  EXPECT_EQ(container["env"][0]["value"], "/ck/team-adult-u-1");
  EXPECT_EQ(container["volumeMounts"],
            Json::parse(R"([{"name": "checkpoints", "mountPath": "/ck", "readOnly": true}])"));
  EXPECT_EQ(spec["volumes"],
            Json::parse(R"([{"name": "checkpoints", "persistentVolumeClaim": {"claimName": "models"}}])"));
  EXPECT_EQ(spec["securityContext"]["runAsUser"], 7);
  EXPECT_EQ(spec["imagePullSecrets"][0]["name"], "s");
  EXPECT_EQ(spec["automountServiceAccountToken"], false);
  EXPECT_FALSE(spec.contains("serviceAccountName"));
  EXPECT_GT(spec["activeDeadlineSeconds"], 0);
  EXPECT_EQ(container["resources"]["requests"]["cpu"], "50m");
  // It goes with the job, but the operator does not take it for a pod of the job.
  EXPECT_EQ(pod->At("/metadata/ownerReferences/0/uid"), "u-1");
  EXPECT_FALSE(pod->controller().has_value());
  EXPECT_FALSE(pod->At("/metadata/labels").contains("medley.dev/job-name"));
}

TEST(ReaderPodTest, WithoutTheCoordinatorsPodItIsRestricted) {
  const auto pod = MakeReaderPod({Job(kVolume), {}, "worker:9", "n", "secret"});
  ASSERT_THAT(pod, base::IsOk());
  EXPECT_EQ(pod->At("/spec/containers/0/image"), "worker:9");
  EXPECT_EQ(pod->At("/spec/securityContext/runAsNonRoot"), true);
  EXPECT_EQ(pod->At("/spec/containers/0/securityContext/allowPrivilegeEscalation"), false);
}

TEST(ReaderPodTest, OfAnObjectStoreItHasTheJobsKeysAndRoomForACopy) {
  kube::Object job = Job(R"({"uri": "s3://bucket/jobs"})");
  job.mutable_json()["spec"]["storage"] = {{"secretName", "keys"}, {"endpoint", "https://minio:9000"}};
  const auto pod = MakeReaderPod({job, Coordinator(), "", "n", "secret"});
  ASSERT_THAT(pod, base::IsOk());
  std::map<std::string, std::string> variables;
  for (const auto& each : pod->At("/spec/containers/0/env"))
    variables[each.value("name", "")] = each.value("value", "");
  EXPECT_THAT(variables["MEDLEY_CHECKPOINT_DIR"], testing::StartsWith("s3://bucket/jobs/"));
  EXPECT_EQ(variables["AWS_ENDPOINT_URL_S3"], "https://minio:9000");
  const std::string text = pod->At("/spec").dump();
  EXPECT_THAT(text, HasSubstr(R"("secretName":"keys")"));
  EXPECT_THAT(text, HasSubstr(R"("emptyDir":{})"));
  EXPECT_THAT(variables["TMPDIR"], testing::Not(testing::IsEmpty()));
}

TEST(ReaderPodTest, SaysWhatIsMissing) {
  EXPECT_THAT(MakeReaderPod({Job(kVolume), {}, "", "n", "secret"}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("name it with --image")));
  EXPECT_THAT(MakeReaderPod({Job(""), Coordinator(), "", "n", "secret"}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("job adult has no checkpoint volume")));
}

}  // namespace
}  // namespace medley::cli
