// Jobs of other controllers that ask for a recommendation: Kubernetes Jobs, JobSets, TrainJobs. What their controllers
// do is played by the test; Jobs are Kubernetes' own on a real API server.
#include <gmock/gmock.h>

#include <algorithm>

#include "common/base/testing/status_matchers.h"
#include "kube/errors.h"
#include "operator/api/resources.h"
#include "operator/recommend/foreign_job.h"
#include "operator/recommend/steps.h"
#include "tests/integration/operator/harness.h"

namespace medley::ops::recommend {
namespace {

using kube::Json;
using testing::HasSubstr;

class RecommenderTest : public OperatorHarness {
 protected:
  void SetUp() override {
    OperatorHarness::SetUp();
    recommend_ = true;
    InstallKind(ForeignKind::kJobSet);
    InstallKind(ForeignKind::kTrainJob);
  }
  void TearDown() override {
    for (const ForeignKind kind : kForeignKinds) {
      const auto left = client_->List(ResourceOf(kind), {.ns = ns_});
      if (!left.ok()) continue;
      for (const kube::Object& job : left->items) {
        const absl::Status done = client_->Delete(ResourceOf(kind), job.key(), {.propagation_policy = "Background"});
        EXPECT_TRUE(done.ok() || kube::IsNotFound(done)) << base::ToString(done);
      }
    }
    OperatorHarness::TearDown();
  }

  // With a schema that takes all: what is of use here is which fields the operator writes.
  void InstallKind(ForeignKind kind) {
    const kube::Resource resource = ResourceOf(kind);
    const Json any = {{"type", "object"}, {"x-kubernetes-preserve-unknown-fields", true}};
    const Json crd = {
        {"apiVersion", "apiextensions.k8s.io/v1"},
        {"kind", "CustomResourceDefinition"},
        {"metadata",
         {{"name", resource.plural + "." + resource.group},
          {"annotations", {{"api-approved.kubernetes.io", "unapproved, a test"}}}}},
        {"spec",
         {{"group", resource.group},
          {"scope", "Namespaced"},
          {"names", {{"plural", resource.plural}, {"singular", "x" + resource.plural}, {"kind", resource.kind}}},
          {"versions",
           {{{"name", resource.version},
             {"served", true},
             {"storage", true},
             {"subresources", {{"status", Json::object()}}},
             {"schema", {{"openAPIV3Schema", any}}}}}}}}};
    server_.InstallCrd(kube::Dump(crd));
  }

  Json Asking(ForeignKind kind, const std::string& name, const Json& annotations, const Json& spec) {
    const kube::Resource resource = ResourceOf(kind);
    Json job = {{"apiVersion", resource.ApiVersion()},
                {"kind", resource.kind},
                {"metadata", {{"name", name}, {"namespace", ns_}, {"labels", {{kRecommendLabel, "true"}}}}},
                {"spec", spec}};
    for (const auto& [key, value] : annotations.items()) job["metadata"]["annotations"]["medley.dev/" + key] = value;
    job["spec"]["suspend"] = true;
    return job;
  }
  void ApplyJob(const std::string& name, const Json& annotations, int nodes = 1) {
    const Json pods = {{"restartPolicy", "Never"}, {"containers", {{{"name", "main"}, {"image", "train:1"}}}}};
    Apply(ResourceOf(ForeignKind::kJob), Asking(ForeignKind::kJob, name, annotations,
                                                {{"completionMode", "Indexed"},
                                                 {"parallelism", nodes},
                                                 {"completions", nodes},
                                                 {"template", {{"spec", pods}}}}));
  }
  void ApplyTrainJob(const std::string& name, const Json& annotations) {
    Apply(ResourceOf(ForeignKind::kTrainJob),
          Asking(ForeignKind::kTrainJob, name, annotations, {{"runtimeRef", {{"name", "torch-distributed"}}}}));
  }
  kube::Object Read(ForeignKind kind, const std::string& name) {
    return client_->Get(ResourceOf(kind), {ns_, name}).value_or(kube::Object());
  }
  bool Resumed(ForeignKind kind, const std::string& name) {
    return Eventually([&] { return Read(kind, name).At("/spec/suspend") == Json(false); }, name + " is resumed");
  }
  // The message of the condition MedleyRecommended if it is False, or "".
  std::string Refusal(ForeignKind kind, const std::string& name) {
    const kube::Object object = Read(kind, name);
    const Json& conditions = object.At("/status/conditions");
    if (!conditions.is_array()) return "";
    for (const Json& each : conditions) {
      if (each.at("type") == kRecommendedCondition && each.at("status") == "False") return each.at("message");
    }
    return "";
  }
  bool Refused(ForeignKind kind, const std::string& name, const std::string& why) {
    return Eventually([&] { return Refusal(kind, name).find(why) != std::string::npos; }, name + " is refused: " + why);
  }
};

// The embedded API server has no Jobs, and no CustomResourceDefinition can stand for them: their group has no dot.
class RecommendedJobTest : public RecommenderTest {};

TEST_P(RecommendedJobTest, AJobGetsTheSizeThatItsDeadlineNeedsAndIsResumed) {
  StartOperator();
  ApplyJob("train",
           {{"throughput", R"({"cpu": 100})"}, {"samples", "36000"}, {"deadline", "100s"}, {"units", "1,2,4,8"}});
  ASSERT_TRUE(Resumed(ForeignKind::kJob, "train"));
  const kube::Object job = Read(ForeignKind::kJob, "train");
  EXPECT_EQ(job.At("/spec/parallelism"), 4);
  EXPECT_EQ(job.At("/spec/completions"), 4);
  EXPECT_TRUE(Eventually(
      [&] {
        const std::string all = kube::Dump(Read(ForeignKind::kJob, "train").At("/status/conditions"));
        return all.find("4 nodes of pool cpu: 400 samples/s, 0.16 USD/h") != std::string::npos;
      },
      "the condition says what was chosen"));
}

TEST_P(RecommenderTest, AJobSetIsPlacedAsItIs) {
  StartOperator();
  const Json pods = {{"containers", Json::array()}};
  const auto part = [&](const char* name, int parallelism) {
    return Json{{"name", name},
                {"replicas", 1},
                {"template", {{"spec", {{"parallelism", parallelism}, {"template", {{"spec", pods}}}}}}}};
  };
  Apply(ResourcePools(), Json::parse(R"({"apiVersion": "medley.dev/v1alpha1", "kind": "ResourcePool",
    "metadata": {"name": "marked"}, "spec": {"class": "CPU", "limit": 16, "unit": {"resources": {"cpu": "1"}},
    "nodeSelector": {"example.com/kind": "marked"}, "price": {"usdPerUnitHour": "0.01"}}})"));
  AddNode("n2", {{"cpu", "64"}, {"pods", "200"}});
  PatchNode("n2", {{"metadata", {{"labels", {{"example.com/kind", "marked"}}}}}});
  ASSERT_TRUE(Eventually(
      [&] {
        return client_->Get(ResourcePools(), {"", "marked"})->At("/status/units/free") == Json(16);
      },
      "the pool has its units"));
  Apply(ResourceOf(ForeignKind::kJobSet),
        Asking(ForeignKind::kJobSet, "set", {{"throughput", R"({"cpu": 100, "marked": 100})"}, {"target", "workers"}},
               {{"replicatedJobs", {part("driver", 1), part("workers", 3)}}}));
  ASSERT_TRUE(Resumed(ForeignKind::kJobSet, "set"));
  const kube::Object set = Read(ForeignKind::kJobSet, "set");
  EXPECT_EQ(set.At("/spec/replicatedJobs/0"), part("driver", 1));
  EXPECT_EQ(set.At("/spec/replicatedJobs/1/template/spec/template/spec/nodeSelector"),
            (Json{{"example.com/kind", "marked"}}));
}

// Trainer makes a suspended JobSet as soon as there is a TrainJob. Its number of pods cannot change.
TEST_P(RecommenderTest, TheSuspendedJobSetOfATrainJobIsMadeAgainWithItsNewSize) {
  ApplyTrainJob("llm", {{"throughput", R"({"cpu": {"4": 390}})"}});
  const kube::Object job = Read(ForeignKind::kTrainJob, "llm");
  kube::Object set(ResourceOf(ForeignKind::kJobSet), {ns_, "llm"});
  ASSERT_THAT(set.SetController(job), base::IsOk());
  set.mutable_json()["spec"] = {
      {"suspend", true},
      {"replicatedJobs", {{{"name", "node"}, {"replicas", 1}, {"template", {{"spec", {{"parallelism", 1}}}}}}}}};
  Apply(ResourceOf(ForeignKind::kJobSet), set.json());
  // That of another owner has the name of another TrainJob.
  ApplyTrainJob("other", {{"throughput", R"({"cpu": {"2": 200}})"}});
  kube::Object strange(ResourceOf(ForeignKind::kJobSet), {ns_, "other"});
  strange.mutable_json()["spec"] = set.At("/spec");
  Apply(ResourceOf(ForeignKind::kJobSet), strange.json());
  StartOperator();
  ASSERT_TRUE(Resumed(ForeignKind::kTrainJob, "llm"));
  ASSERT_TRUE(Resumed(ForeignKind::kTrainJob, "other"));
  EXPECT_EQ(Read(ForeignKind::kTrainJob, "llm").At("/spec/trainer/numNodes"), 4);
  EXPECT_TRUE(kube::IsNotFound(client_->Get(ResourceOf(ForeignKind::kJobSet), {ns_, "llm"}).status()));
  EXPECT_THAT(client_->Get(ResourceOf(ForeignKind::kJobSet), {ns_, "other"}), base::IsOk());
}

TEST_P(RecommenderTest, AnInfeasibleJobSaysWhyAndIsResumedWhenItCanBe) {
  StartOperator();
  ApplyTrainJob("fast", {{"throughput", R"({"cpu": 100})"}, {"min-throughput", "2000"}});
  EXPECT_TRUE(Refused(ForeignKind::kTrainJob, "fast",
                      "min-throughput: 2,000 samples/s are asked for, 16 nodes of pool cpu reach 1,600"));
  ApplyTrainJob("wrong", {{"throughput", R"({"cpu": 100})"}, {"deadlin", "1h"}});
  EXPECT_TRUE(Refused(ForeignKind::kTrainJob, "wrong", "annotation medley.dev/deadlin: unknown"));
  EXPECT_EQ(Read(ForeignKind::kTrainJob, "wrong").At("/spec/suspend"), Json(true));
  ASSERT_THAT(client_->Patch(ResourcePools(), {"", "cpu"}, kube::PatchType::kMerge, {{"spec", {{"limit", 20}}}}),
              base::IsOk());
  ASSERT_TRUE(Resumed(ForeignKind::kTrainJob, "fast"));
  EXPECT_EQ(Read(ForeignKind::kTrainJob, "fast").At("/spec/trainer/numNodes"), 20);
}

// 20 jobs of 2 nodes and 16 units: 8 run at a time, the others as these end.
TEST_P(RecommenderTest, NoMoreUnitsAreGivenThanThereAre) {
  constexpr int kJobs = 20;
  StartOperator();
  for (int i = 0; i < kJobs; ++i) ApplyTrainJob("j" + std::to_string(i), {{"throughput", R"({"cpu": {"2": 200}})"}});
  std::vector<std::string> waiting, ended;
  for (int i = 0; i < kJobs; ++i) waiting.push_back("j" + std::to_string(i));
  while (!waiting.empty()) {
    const size_t expected = std::min<size_t>(8, waiting.size());
    std::vector<std::string> running;
    ASSERT_TRUE(Eventually(
        [&] {
          running.clear();
          for (const std::string& name : waiting) {
            if (Read(ForeignKind::kTrainJob, name).At("/spec/suspend") == Json(false)) running.push_back(name);
          }
          EXPECT_LE(running.size(), 8U);
          return running.size() == expected;
        },
        std::to_string(expected) + " jobs have units"));
    Settle();
    for (const std::string& name : running) {
      const Json complete = Json::array({{{"type", "Complete"}, {"status", "True"}}});
      ASSERT_THAT(client_->Patch(ResourceOf(ForeignKind::kTrainJob), {ns_, name}, kube::PatchType::kMerge,
                                 {{"status", {{"conditions", complete}}}}, {}, "status"),
                  base::IsOk());
      std::erase(waiting, name);
    }
  }
}

// An answer that a user wrote holds no unit, and does not resume a job.
TEST_P(RecommenderTest, ACopiedAnswerHoldsNothing) {
  StartOperator();
  ApplyTrainJob("honest", {{"throughput", R"({"cpu": {"1": 100}})"}});
  ASSERT_TRUE(Resumed(ForeignKind::kTrainJob, "honest"));
  const kube::Object honest = Read(ForeignKind::kTrainJob, "honest");
  ApplyTrainJob("liar", {{"throughput", R"({"cpu": {"30": 100}})"},
                         {"recommended", R"({"pool": "cpu", "nodes": 16})"},
                         {"recommended-by", honest.annotation(kChosenByAnnotation)}});
  EXPECT_TRUE(Refused(ForeignKind::kTrainJob, "liar", "limit of pool cpu: 30 nodes needed, 15 free"));
  ApplyTrainJob("other", {{"throughput", R"({"cpu": {"15": 100}})"}});
  EXPECT_TRUE(Resumed(ForeignKind::kTrainJob, "other"));
}

TEST_P(RecommenderTest, AJobThatItsUserSuspendsAgainStaysSo) {
  StartOperator();
  ApplyTrainJob("paused", {{"throughput", R"({"cpu": 100})"}});
  ASSERT_TRUE(Resumed(ForeignKind::kTrainJob, "paused"));
  ASSERT_THAT(client_->Patch(ResourceOf(ForeignKind::kTrainJob), {ns_, "paused"}, kube::PatchType::kMerge,
                             {{"spec", {{"suspend", true}}}}),
              base::IsOk());
  StopOperator();
  StartOperator();
  ApplyTrainJob("next", {{"throughput", R"({"cpu": 100})"}});
  ASSERT_TRUE(Resumed(ForeignKind::kTrainJob, "next"));
  EXPECT_EQ(Read(ForeignKind::kTrainJob, "paused").At("/spec/suspend"), Json(true));
}

TEST_P(RecommenderTest, APoolOfAnotherNamespaceIsNotUsed) {
  ASSERT_THAT(client_->Patch(ResourcePools(), {"", "cpu"}, kube::PatchType::kMerge,
                             {{"spec", {{"namespaces", {"somewhere-else"}}}}}),
              base::IsOk());
  StartOperator();
  ApplyTrainJob("train", {{"throughput", R"({"cpu": 100})"}});
  EXPECT_TRUE(Refused(ForeignKind::kTrainJob, "train", "no pool of those named exists and may be used here"));
}

TEST_P(RecommendedJobTest, ASizeThatCannotChangeStays) {
  StartOperator();
  ApplyJob("train", {{"throughput", R"({"cpu": 100})"}}, 3);
  ASSERT_TRUE(Resumed(ForeignKind::kJob, "train"));
  EXPECT_EQ(Read(ForeignKind::kJob, "train").At("/spec/parallelism"), 3);
}

std::vector<kube::ServerKind> RealServers() {
  std::vector<kube::ServerKind> servers = kube::ServersUnderTest();
  std::erase_if(servers, [](kube::ServerKind kind) { return kind == kube::ServerKind::kEmbedded; });
  return servers;
}

INSTANTIATE_TEST_SUITE_P(On, RecommenderTest, testing::ValuesIn(kube::ServersUnderTest()), kube::ServerName);
INSTANTIATE_TEST_SUITE_P(On, RecommendedJobTest, testing::ValuesIn(RealServers()), kube::ServerName);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RecommendedJobTest);

}  // namespace
}  // namespace medley::ops::recommend
