// Every CEL rule of the CRDs has a manifest in tests/data/manifests that breaks it. API servers refuse these manifests
// (tests/integration/operator/manifests_test.cc); the operator refuses them with the same messages.
#include "operator/api/validate.h"

#include <gmock/gmock.h>

#include "common/base/testing/status_matchers.h"
#include "common/model/job_spec.h"
#include "common/model/task.h"
#include "operator/api/resource_pool.h"
#include "operator/api/training_job.h"
#include "tests/unit/operator/api/manifest_cases.h"

namespace medley::ops {
namespace {

using kube::Json;
using testing::ElementsAre;
using testing::IsEmpty;

kube::Object GoodJob() { return kube::Object(LoadYaml("tests/data/manifests/good/job-minimal.yaml")); }
kube::Object GoodPool() { return kube::Object(LoadYaml("tests/data/manifests/good/pool-minimal.yaml")); }

TEST(ValidateTest, GoodManifestsBreakNoRuleAndAreRead) {
  for (const kube::Object& manifest : GoodManifests()) {
    SCOPED_TRACE(manifest.key().name);
    if (manifest.kind() == "ResourcePool") {
      EXPECT_THAT(ValidateResourcePool(manifest), IsEmpty());
      EXPECT_THAT(ResourcePool::FromObject(manifest), base::IsOk());
      continue;
    }
    EXPECT_THAT(ValidateTrainingJob(manifest), IsEmpty());
    EXPECT_THAT(ValidateTrainingJobUpdate(manifest.At("/spec"), manifest.At("/spec")), IsEmpty());
    const auto job = TrainingJob::FromObject(manifest);
    ASSERT_THAT(job, base::IsOk());
    const auto spec = model::ParseJobSpec(job->spec.dump());
    ASSERT_THAT(spec, base::IsOk());
    EXPECT_THAT(model::Validate(*spec), base::IsOk());
  }
}

TEST(ValidateTest, EachBadManifestGetsExactlyTheMessageOfItsRule) {
  for (const ManifestCase& bad : BadManifests()) {
    if (bad.rule.empty()) continue;
    EXPECT_THAT(bad.Validate(), ElementsAre(bad.rule)) << bad.name;
  }
}

TEST(ValidateTest, ManifestsThatOnlyTheClusterCanRefuseBreakNoRule) {
  for (const ManifestCase& bad : BadManifests()) {
    if (bad.condition.is_null()) continue;
    EXPECT_THAT(bad.Validate(), IsEmpty()) << bad.name;
  }
}

TEST(ValidateTest, AnObjectiveHasAnyOfTheBounds) {
  const std::vector<std::pair<const char*, Json>> bounds = {
      {"minThroughput", 100}, {"maxUsdPerHour", "5"}, {"budgetUsd", "0.5"}, {"deadline", "2h"}};
  const std::vector<Json> objectives = {{{"minimize", "Usd"}},     {{"minimize", "UsdPerHour"}}, {{"fastest", true}},
                                        {{"minimize", "Seconds"}}, {{"fastest", false}},         Json::object()};
  for (const Json& objective : objectives) {
    for (unsigned some = 0; some < 1U << bounds.size(); ++some) {
      Json job = GoodJob().json();
      job["spec"]["objective"] = objective;
      for (size_t i = 0; i < bounds.size(); ++i) {
        if ((some >> i & 1) != 0) job["spec"]["objective"][bounds[i].first] = bounds[i].second;
      }
      EXPECT_THAT(ValidateTrainingJob(kube::Object(job)), IsEmpty()) << job["spec"]["objective"];
      EXPECT_THAT(TrainingJob::FromObject(kube::Object(job)), base::IsOk()) << job["spec"]["objective"];
    }
  }
}

// The rules list the metrics of each task; the evaluation computes those of TaskMetrics.
TEST(ValidateTest, RulesAllowTheMetricsThatAreComputed) {
  using model::Task;
  constexpr Task kTasks[] = {Task::kBinary, Task::kRegression, Task::kMultiClass, Task::kMultiLabel, Task::kOwnLoss};
  std::set<std::string> all;
  for (const Task task : kTasks) {
    for (std::string& metric : model::TaskMetrics(task)) all.insert(std::move(metric));
  }
  for (const Task task : kTasks) {
    const std::vector<std::string> known = model::TaskMetrics(task);
    for (const std::string& metric : all) {
      Json job = GoodJob().json();
      job["spec"]["model"]["task"] = TaskName(task);
      job["spec"]["training"] = {{"evaluation", {{"everyEpochs", 1}, {"metric", metric}}},
                                 {"earlyStopping", {{"metric", metric}, {"patience", 1}}}};
      const std::vector<std::string> broken = ValidateTrainingJob(kube::Object(job));
      const auto about_metrics = [](const std::string& sentence) {
        return sentence.find("metric must be one of the task") != std::string::npos;
      };
      EXPECT_EQ(std::ranges::count_if(broken, about_metrics), std::ranges::count(known, metric) > 0 ? 0 : 2)
          << TaskName(task) << " " << metric;
    }
  }
}

TEST(ValidateTest, EveryRuleOfTheCrdsHasAManifest) {
  std::set<std::string> jobs, pools;
  for (const ManifestCase& bad : BadManifests()) {
    if (!bad.rule.empty()) (bad.is_pool() ? pools : jobs).insert(bad.rule);
  }
  EXPECT_EQ(RuleSentences("trainingjobs.yaml"), jobs);
  EXPECT_EQ(RuleSentences("resourcepools.yaml"), pools);
}

TEST(ValidateTest, AMissingFieldIsNamedInsteadOfTheRulesThatNeedIt) {
  Json job = GoodJob().json();
  job["spec"].erase("model");
  EXPECT_THAT(ValidateTrainingJob(kube::Object(job)), ElementsAre("spec must have either program, or model and data"));
  job = GoodJob().json();
  job["spec"]["data"].erase("train");
  EXPECT_THAT(ValidateTrainingJob(kube::Object(job)), ElementsAre("spec.data.train: Required value"));
}

TEST(ValidateTest, CheckpointsMayUseAnyVolumeThatPodsShare) {
  for (const char* source : {"persistentVolumeClaim", "hostPath", "nfs", "csi", "cephfs"}) {
    Json job = GoodJob().json();
    job["spec"]["checkpoint"]["volume"] = {{source, {{"path", "/x"}}}, {"mountPath", "/ck"}};
    EXPECT_THAT(ValidateTrainingJob(kube::Object(job)), IsEmpty()) << source;
  }
}

TEST(ValidateTest, DefaultsAddedByTheServerAreNotAnUpdate) {
  const Json before = GoodJob().json()["spec"];
  Json after = before;
  after["training"] = {{"seed", 1}};
  after["model"]["parameters"] = {{"embeddingDim", 16}};
  after["data"]["schema"]["numericBuckets"] = 0;
  EXPECT_THAT(ValidateTrainingJobUpdate(before, after), IsEmpty());
}

TEST(ValidateTest, ValuesOfAWrongTypeDoNotCrash) {
  for (const char* junk : {"null", "[]", "7", R"("x")", R"({"model": 7, "data": [], "runPolicy": "x"})"}) {
    Json job = GoodJob().json();
    job["spec"] = Json::parse(junk);
    ValidateTrainingJob(kube::Object(job));
    Json pool = GoodPool().json();
    pool["spec"] = Json::parse(junk);
    ValidateResourcePool(kube::Object(pool));
  }
}

}  // namespace
}  // namespace medley::ops
