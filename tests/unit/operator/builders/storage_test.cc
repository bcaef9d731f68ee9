// How a job's pods reach object stores: spec.storage.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/api/job_folder.h"
#include "operator/builders/pods.h"
#include "tests/unit/operator/builders/sample_job.h"

namespace medley::ops {
namespace {

using kube::Json;
using testing::HasSubstr;
using testing::Not;

// The entry of a list with this value of a field; null if there is none.
Json Entry(const Json& list, const char* field, const std::string& value) {
  for (const Json& each : list) {
    if (each.value(field, "") == value) return each;
  }
  return nullptr;
}

Json WithStorage() {
  Json json = SampleJobJson();
  json["spec"]["storage"] = {
      {"secretName", "keys"}, {"endpoint", "https://minio:9000"}, {"region", "eu-west-1"}, {"pathStyle", true}};
  return json;
}

TEST(StorageTest, AJobWithoutStorageGetsNothing) {
  for (const kube::Object& pod : EachKindOfPod(ReadJob(SampleJobJson()), SamplePool(), {})) {
    EXPECT_THAT(pod.json().dump(), Not(HasSubstr("AWS_")));
    EXPECT_THAT(pod.json().dump(), Not(HasSubstr("storage-keys")));
  }
}

TEST(StorageTest, EveryPodHasTheKeysAsFilesAndTheRestAsVariables) {
  for (const kube::Object& pod : EachKindOfPod(ReadJob(WithStorage()), SamplePool(), {})) {
    const Json& worker = pod.At("/spec/containers/0");
    EXPECT_EQ(Entry(worker["env"], "name", "AWS_ENDPOINT_URL_S3")["value"], "https://minio:9000");
    EXPECT_EQ(Entry(worker["env"], "name", "AWS_REGION")["value"], "eu-west-1");
    EXPECT_EQ(Entry(worker["env"], "name", "MEDLEY_S3_PATH_STYLE")["value"], "1");
    EXPECT_EQ(Entry(worker["env"], "name", "MEDLEY_STORAGE_CA"), nullptr);
    EXPECT_EQ(Entry(worker["volumeMounts"], "mountPath", "/etc/medley/storage")["readOnly"], true);
    const Json secret = Entry(pod.At("/spec/volumes"), "name", "storage-keys")["secret"];
    EXPECT_EQ(secret, (Json{{"secretName", "keys"}, {"defaultMode", 0440}, {"optional", true}}));
    EXPECT_THAT(worker["env"].dump(), Not(HasSubstr("secretKeyRef"))) << "no variable holds a secret";
  }
}

TEST(StorageTest, AJobWhoseFolderIsInAnObjectStoreMountsNoCheckpointVolume) {
  Json json = WithStorage();
  json["spec"]["checkpoint"] = {{"uri", "s3://shop/jobs/"}};
  const TrainingJob job = ReadJob(json);
  EXPECT_TRUE(job.keeps_checkpoints());
  EXPECT_EQ(CheckpointDir(job), "s3://shop/jobs/" + JobFolder(job.object));
  for (const kube::Object& pod : EachKindOfPod(job, SamplePool(), {})) {
    EXPECT_EQ(Entry(pod.At("/spec/volumes"), "name", "checkpoints"), nullptr);
    const Json& worker = pod.At("/spec/containers/0");
    EXPECT_EQ(Entry(worker["env"], "name", "MEDLEY_CHECKPOINT_DIR")["value"], CheckpointDir(job));
    EXPECT_EQ(Entry(pod.At("/spec/volumes"), "name", "storage-keys")["secret"]["secretName"], "keys");
  }
}

TEST(StorageTest, ATemplateCannotPutOtherFilesInThePlaceOfTheKeys) {
  Json json = WithStorage();
  json["spec"]["template"]["spec"]["volumes"] = {{{"name", "storage-keys"}, {"emptyDir", Json::object()}}};
  for (const kube::Object& pod : EachKindOfPod(ReadJob(json), SamplePool(), {})) {
    EXPECT_FALSE(Entry(pod.At("/spec/volumes"), "name", "storage-keys").contains("emptyDir"));
  }
}

}  // namespace
}  // namespace medley::ops
