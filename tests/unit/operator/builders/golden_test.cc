// Compares the objects of a job with tests/golden/operator/*.json. With MEDLEY_GOLDEN_UPDATE=1 the test writes these
// files instead; review the difference.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>

#include "common/base/file.h"
#include "common/base/testing/status_matchers.h"
#include "operator/api/resources.h"
#include "operator/builders/credentials.h"
#include "operator/builders/objects.h"
#include "operator/builders/pod_group.h"
#include "operator/builders/pods.h"
#include "tests/unit/operator/builders/sample_job.h"

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
    job_ = ReadJob(SampleJobJson());
    pool_ = SamplePool();
    settings_ = {"registry/medley-worker:1", 7070, 9090};
  }

  TrainingJob job_;
  ResourcePool pool_;
  WorkerSettings settings_;
};

TEST_F(GoldenTest, Pods) {
  ExpectGolden("coordinator", CoordinatorPod(job_, settings_));
  ExpectGolden("trainer", MemberPod(job_, {"adult-1-v100-spot-0", Role::kTrainer, "v100-spot", 1, 0}, pool_, settings_,
                                    "10.0.0.7:7070", 3));
  ExpectGolden("server", MemberPod(job_, {"adult-server-0", Role::kServer, "v100-spot", 0, 0}, pool_, settings_,
                                   "10.0.0.7:7070", 3));
  ExpectGolden("profiler", ProfilerPod(job_, pool_, settings_));
}

std::string ThreadsOf(const kube::Object& pod) {
  for (const Json& entry : pod.At("/spec/containers/0/env")) {
    if (entry.at("name") == "OMP_NUM_THREADS") return entry.at("value");
  }
  return "";
}

TEST_F(GoldenTest, ProcessesThatComputeHaveAThreadForEachCpuOfTheirUnit) {
  Json json = SampleJobJson();
  json["spec"].erase("template");
  const TrainingJob job = ReadJob(json);
  const std::map<std::string, std::string> threads = {{"4", "4"}, {"500m", "1"}, {"2500m", "2"}, {"", "1"}};
  for (const auto& [cpu, expected] : threads) {
    pool_.unit_resources.erase("cpu");
    if (!cpu.empty()) pool_.unit_resources["cpu"] = cpu;
    const std::vector<kube::Object> pods = EachKindOfPod(job, pool_, settings_);
    EXPECT_EQ(ThreadsOf(pods[0]), "1") << "the coordinator";
    EXPECT_EQ(ThreadsOf(pods[1]), expected) << "a trainer with " << cpu;
    EXPECT_EQ(ThreadsOf(pods[2]), "1") << "a server";
    EXPECT_EQ(ThreadsOf(pods[3]), expected) << "the profiler with " << cpu;
  }
  EXPECT_EQ(ThreadsOf(EachKindOfPod(job_, pool_, settings_)[1]), "2") << "the template's value";
}

TEST_F(GoldenTest, Others) {
  ExpectGolden("service", CoordinatorService(job_, settings_));
  ExpectGolden("spec-configmap", SpecConfigMap(job_));
  ExpectGolden("token-secret", TokenSecret(job_, {"0123", "certificate", "key"}, "adult-token-0123"));
  ExpectGolden("network-policy", JobNetworkPolicy(job_, settings_));
  ExpectGolden("disruption-budget", DisruptionBudget(job_, 4));
  ExpectGolden("pod-group", PodGroup(job_, PodGroupKind::kSchedulerPlugins, 3));
  ExpectGolden("profile-configmap", ProfileConfigMap("ml", "00ff", "v100-spot", "{}"));
}

TEST_F(GoldenTest, TheWorkersContractOverridesTheTemplate) {
  const kube::Object pod = MemberPod(job_, {"m", Role::kTrainer, "v100-spot", 0, 0}, pool_, settings_, "10.0.0.7:1", 1);
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

TEST_F(GoldenTest, APinnedTrainer) {
  const MemberSlot slot{"adult-1-v100-spot-0", Role::kTrainer, "v100-spot", 1, 0, "us-east-1b"};
  ExpectGolden("trainer-pinned", MemberPod(job_, slot, pool_, settings_, "10.0.0.7:7070", 3));
}

TEST_F(GoldenTest, APinHoldsInEveryTermAndGivesWayToANodeSelector) {
  const MemberSlot slot{"m", Role::kTrainer, "v100-spot", 0, 0, "us-east-1b"};
  Json sample = SampleJobJson();
  sample["spec"]["template"]["spec"]["affinity"] = Json::parse(R"({"nodeAffinity": {
      "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}, {"matchExpressions": []}]}}})");
  const kube::Object pod = MemberPod(ReadJob(sample), slot, pool_, settings_, "10.0.0.7:1", 1);
  const Json pin = {{"key", "topology.kubernetes.io/zone"}, {"operator", "In"}, {"values", {"us-east-1b"}}};
  const Json& terms =
      pod.At("/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms");
  ASSERT_EQ(terms.size(), 2u);
  EXPECT_EQ(terms[0]["matchExpressions"].size(), 2u);
  for (const Json& term : terms) EXPECT_EQ(term["matchExpressions"].back(), pin);
  pool_.node_selector["topology.kubernetes.io/zone"] = "us-east-1a";
  EXPECT_TRUE(MemberPod(job_, slot, pool_, settings_, "10.0.0.7:1", 1).At("/spec/affinity").is_null());
}

TEST_F(GoldenTest, TheCredentialsSurviveTheSecret) {
  for (const JobCredentials& each :
       {JobCredentials{"s3cret", "", ""}, JobCredentials{"s3cret", "certificate", "key"}}) {
    EXPECT_EQ(CredentialsOf(TokenSecret(job_, each, "s")), each);
  }
  // A process that found half a CA could not tell whether to encrypt.
  EXPECT_TRUE(CredentialsOf(TokenSecret(job_, {"s3cret", "certificate", ""}, "s")).empty());
  EXPECT_TRUE(CredentialsOf(TokenSecret(job_, {"", "certificate", "key"}, "s")).empty());
}

TEST_F(GoldenTest, TheFingerprintTellsCredentialsApart) {
  EXPECT_EQ(FingerprintOf({}), "");
  EXPECT_NE(FingerprintOf({"a", "", ""}), FingerprintOf({"b", "", ""}));
  EXPECT_NE(FingerprintOf({"a", "", ""}), FingerprintOf({"a", "certificate", "key"}));
}

}  // namespace
}  // namespace medley::ops
