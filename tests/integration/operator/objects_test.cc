// The objects of a job beside its pods: created, following the plan, owned by the job and deleted with it; and jobs
// that another controller manages.
#include <gmock/gmock.h>

#include "common/base/testing/status_matchers.h"
#include "kube/errors.h"
#include "operator/api/resources.h"
#include "operator/builders/pod_group.h"
#include "tests/integration/operator/harness.h"
#include "tests/unit/operator/api/manifest_cases.h"

namespace medley::ops {
namespace {

using kube::Json;
using testing::HasSubstr;
using testing::IsEmpty;

class ObjectsTest : public OperatorHarness {
 protected:
  void SetUp() override {
    OperatorHarness::SetUp();
    StartOperator();
  }
  Json Scheduled(const Json& policy) {
    Json job = JobJson();
    job["spec"]["runPolicy"]["schedulingPolicy"] = policy;
    return job;
  }
  void InstallPodGroups(PodGroupKind kind) {
    const bool volcano = kind == PodGroupKind::kVolcano;
    server_.InstallCrd(CrdText(volcano ? "volcano.yaml" : "scheduler-plugins.yaml", "podgroups"));
  }
  // On a real server they would still exist in the next test.
  void RemovePodGroups() {
    for (const PodGroupKind kind : {PodGroupKind::kVolcano, PodGroupKind::kSchedulerPlugins}) {
      const std::string name = "podgroups." + PodGroups(kind).group;
      const absl::Status gone = client_->Delete(kube::resources::CustomResourceDefinitions(), {"", name});
      EXPECT_TRUE(gone.ok() || kube::IsNotFound(gone)) << base::ToString(gone);
      const auto unknown = [&] { return kube::IsNotFound(client_->List(PodGroups(kind), {.ns = ns_}).status()); };
      EXPECT_TRUE(server_.Eventually(unknown)) << name;
    }
  }
};
INSTANTIATE_TEST_SUITE_P(On, ObjectsTest, testing::ValuesIn(kube::ServersUnderTest()), kube::ServerName);

TEST_P(ObjectsTest, AreOwnedByTheJobAndGoWithIt) {
  RunJob();
  const std::string uid = Get(TrainingJobs(), {ns_, "adult"}).uid();
  const std::vector<std::pair<kube::Resource, std::string>> objects = {
      {kube::resources::Services(), "adult-coordinator"}, {kube::resources::ConfigMaps(), "adult-spec"},
      {kube::resources::ConfigMaps(), "adult-plan"},      {kube::resources::Secrets(), "adult-token"},
      {kube::resources::NetworkPolicies(), "adult"},      {kube::resources::PodDisruptionBudgets(), "adult"}};
  for (const auto& [resource, name] : objects) {
    const kube::Object object = Get(resource, {ns_, name});
    ASSERT_TRUE(object.controller().has_value()) << name;
    EXPECT_EQ(object.controller()->uid, uid) << name;
  }
  EXPECT_GE(Get(kube::resources::Secrets(), {ns_, "adult-token"}).String("/data/token").size(), 64u);
  ASSERT_THAT(client_->Delete(TrainingJobs(), {ns_, "adult"}), base::IsOk());
  EXPECT_TRUE(Eventually(
      [&] {
        return std::none_of(objects.begin(), objects.end(), [&](const auto& o) {
          return Exists(o.first, {ns_, o.second});
        });
      },
      "everything is deleted with the job"));
}

TEST_P(ObjectsTest, TheDisruptionBudgetFollowsThePlan) {
  RunJob();
  const auto min_available = [&] {
    const auto budget = client_->Get(kube::resources::PodDisruptionBudgets(), {ns_, "adult"});
    return budget.ok() ? budget->At("/spec/minAvailable") : Json();
  };
  // Two trainers of emb, one of fc, a server and the coordinator; one may be evicted.
  EXPECT_EQ(min_available(), 4);
  EXPECT_EQ(Get(kube::resources::PodDisruptionBudgets(), {ns_, "adult"}).String("/spec/unhealthyPodEvictionPolicy"),
            "AlwaysAllow");
  PatchSpec("adult", {{"runPolicy", {{"disruptionBudget", {{"maxUnavailable", 2}}}}}});
  EXPECT_TRUE(Eventually([&] { return min_available() == 3; }, "two may be evicted"));
  scheduler_.Publish(20);  // another plan: four trainers on cpu and a server
  ASSERT_TRUE(Eventually([&] { return Status().plan && Status().plan->generation == 2; }, "generation 2"));
  EXPECT_TRUE(Eventually([&] { return min_available() == static_cast<int>(coordinator_.members().size()) + 1 - 2; },
                         "the new plan's"));
  PatchSpec("adult", {{"runPolicy", {{"disruptionBudget", {{"enabled", false}}}}}});
  EXPECT_TRUE(Eventually([&] { return min_available().is_null(); }, "none"));
}

TEST_P(ObjectsTest, MembersJoinThePodGroupOfTheirScheduler) {
  for (const PodGroupKind kind : {PodGroupKind::kVolcano, PodGroupKind::kSchedulerPlugins}) {
    const bool volcano = kind == PodGroupKind::kVolcano;
    const std::string name = volcano ? "with-volcano" : "with-plugins";
    SCOPED_TRACE(name);
    InstallPodGroups(kind);
    Json job = Scheduled({{"schedulerName", volcano ? "volcano" : "gang"}, {"queue", "ads"}});
    job["metadata"]["name"] = name;
    Apply(TrainingJobs(), job);
    // The coordinator fake has one state for all jobs: the pods are what counts.
    ASSERT_TRUE(Eventually([&] { return PodNames().contains(name + "-server-0"); }, "members"));
    const kube::Object group = Get(PodGroups(kind), {ns_, name});
    EXPECT_EQ(group.At("/spec/minMember"), 4);
    EXPECT_EQ(group.String("/spec/queue"), volcano ? "ads" : "");
    ASSERT_TRUE(group.controller().has_value());
    for (const char* suffix : {"-0-cpu-0", "-1-gpu-0", "-server-0", "-coordinator"}) {
      const kube::Object pod = Get(kube::resources::Pods(), {ns_, name + suffix});
      const bool member = std::string(suffix) != "-coordinator";
      EXPECT_EQ(pod.String("/spec/schedulerName"), volcano ? "volcano" : "gang");
      EXPECT_EQ(pod.annotation("scheduling.k8s.io/group-name"), member && volcano ? name : "");
      EXPECT_EQ(pod.label("scheduling.x-k8s.io/pod-group"), member && !volcano ? name : "");
    }
    ASSERT_THAT(client_->Delete(TrainingJobs(), {ns_, name}), base::IsOk());
    ASSERT_TRUE(Eventually([&] { return !Exists(TrainingJobs(), {ns_, name}); }, "deleted"));
    coordinator_.Forget();
  }
  RemovePodGroups();
}

TEST_P(ObjectsTest, WithoutThePodGroupsKindPodsAreScheduledOneByOne) {
  Apply(TrainingJobs(), Scheduled({{"schedulerName", "volcano"}}));
  ASSERT_TRUE(WaitForCondition("Running", "True"));
  EXPECT_TRUE(Eventually([&] { return HasEvent("PodGroupUnavailable", "scheduling.volcano.sh/v1beta1"); }, "event"));
  const kube::Object pod = Get(kube::resources::Pods(), {ns_, "adult-0-cpu-0"});
  EXPECT_EQ(pod.annotation("scheduling.k8s.io/group-name"), "");
  EXPECT_EQ(pod.String("/spec/schedulerName"), "volcano");
}

TEST_P(ObjectsTest, AForeignObjectOfTheNameIsNotTouchedAndIsReported) {
  const Json secret = {{"apiVersion", "v1"},
                       {"kind", "Secret"},
                       {"metadata", {{"name", "adult-token"}, {"namespace", ns_}}},
                       {"stringData", {{"token", "known to another user"}}}};
  Apply(kube::resources::Secrets(), secret);
  const std::string version = Get(kube::resources::Secrets(), {ns_, "adult-token"}).resource_version();
  Apply(TrainingJobs(), JobJson());
  EXPECT_TRUE(Eventually([&] { return HasEvent("NameTaken", "adult-token"); }, "event"));
  EXPECT_THAT(PodNames(), IsEmpty());
  EXPECT_EQ(Get(kube::resources::Secrets(), {ns_, "adult-token"}).resource_version(), version);
  // It is deleted, and the job runs with a token of its own.
  ASSERT_THAT(client_->Delete(kube::resources::Secrets(), {ns_, "adult-token"}), base::IsOk());
  EXPECT_TRUE(WaitForCondition("Running", "True"));
}

// The operator creates no pods, and reads, checks, writes and reports nothing either.
TEST_P(ObjectsTest, AJobOfAnotherManagerIsNotTouchedAtAll) {
  Json job = JobJson();
  job["spec"]["runPolicy"]["managedBy"] = "kueue.x-k8s.io/multikueue";
  job["spec"]["resources"]["pools"] = {"no-such-pool"};
  Json invalid = job;
  invalid["metadata"]["name"] = "invalid";
  invalid["spec"]["model"] = {{"layers", {{{"name", "fc"}, {"kind", "FullyConnected"}, {"out", 1}}}}};
  for (const Json& object : {job, invalid}) Apply(TrainingJobs(), object);
  const auto versions = [&] {
    return std::pair(Get(TrainingJobs(), {ns_, "adult"}).resource_version(),
                     Get(TrainingJobs(), {ns_, "invalid"}).resource_version());
  };
  const auto before = versions();
  Settle();
  PatchSpec("adult", {{"runPolicy", {{"suspend", true}}}});
  const auto changed = versions();
  EXPECT_NE(before.first, changed.first);
  Settle();
  EXPECT_EQ(versions(), changed);
  EXPECT_TRUE(Get(TrainingJobs(), {ns_, "adult"}).At("/status").is_null());
  for (const kube::Resource& resource :
       {kube::resources::Pods(), kube::resources::Secrets(), kube::resources::Services(),
        kube::resources::NetworkPolicies(), kube::resources::PodDisruptionBudgets(), kube::resources::Events()}) {
    const auto list = client_->List(resource, {.ns = ns_});
    ASSERT_THAT(list, base::IsOk());
    for (const kube::Object& object : list->items)
      EXPECT_THAT(object.key().name, testing::Not(HasSubstr("adult"))) << resource.kind;
  }
  // And its deletion is not held up.
  ASSERT_THAT(client_->Delete(TrainingJobs(), {ns_, "adult"}), base::IsOk());
  EXPECT_FALSE(Exists(TrainingJobs(), {ns_, "adult"}));
}

// A job is deleted and made again under its name: nothing of the first is taken for the second's.
TEST_P(ObjectsTest, AJobMadeAgainGetsItsOwnToken) {
  RunJob();
  const std::string token = Get(kube::resources::Secrets(), {ns_, "adult-token"}).String("/data/token");
  ASSERT_THAT(client_->Delete(TrainingJobs(), {ns_, "adult"}), base::IsOk());
  ASSERT_TRUE(Eventually([&] { return !Exists(TrainingJobs(), {ns_, "adult"}); }, "deleted"));
  coordinator_.Forget();
  RunJob();
  const kube::Object secret = Get(kube::resources::Secrets(), {ns_, "adult-token"});
  EXPECT_NE(secret.String("/data/token"), token);
  EXPECT_EQ(secret.controller()->uid, Get(TrainingJobs(), {ns_, "adult"}).uid());
}

}  // namespace
}  // namespace medley::ops
