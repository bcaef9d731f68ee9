// The objects of a job beside its pods: created, following the plan, owned by the job and deleted with it; and jobs
// that another controller manages.
#include <gmock/gmock.h>

#include "common/base/testing/status_matchers.h"
#include "common/model/execution_plan.h"
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
    capacity_debounce_ = std::chrono::hours(1);  // units that the profilers leave are no reason to move here
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
      {kube::resources::ConfigMaps(), "adult-plan"},      {kube::resources::Secrets(), SecretOf("adult")},
      {kube::resources::NetworkPolicies(), "adult"},      {kube::resources::PodDisruptionBudgets(), "adult"}};
  for (const auto& [resource, name] : objects) {
    const kube::Object object = Get(resource, {ns_, name});
    ASSERT_TRUE(object.controller().has_value()) << name;
    EXPECT_EQ(object.controller()->uid, uid) << name;
  }
  EXPECT_GE(Get(kube::resources::Secrets(), {ns_, SecretOf("adult")}).String("/data/token").size(), 64u);
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
    ASSERT_THAT(client_->Patch(PodGroups(kind), {ns_, name}, kube::PatchType::kMerge, {{"spec", {{"minMember", 1}}}}),
                base::IsOk());
    EXPECT_TRUE(Eventually(
        [&] {
          clock_.Advance(base::seconds(1));  // it is looked at once a minute
          return Get(PodGroups(kind), {ns_, name}).At("/spec/minMember") == 4;
        },
        "minMember is restored"));
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
  const Json map = {{"apiVersion", "v1"},
                    {"kind", "ConfigMap"},
                    {"metadata", {{"name", "adult-spec"}, {"namespace", ns_}}},
                    {"data", {{"spec.json", "of another user"}}}};
  Apply(kube::resources::ConfigMaps(), map);
  const std::string version = Get(kube::resources::ConfigMaps(), {ns_, "adult-spec"}).resource_version();
  Apply(TrainingJobs(), JobJson());
  EXPECT_TRUE(Eventually([&] { return HasEvent("NameTaken", "adult-spec"); }, "event"));
  EXPECT_THAT(PodNames(), IsEmpty());
  EXPECT_EQ(Get(kube::resources::ConfigMaps(), {ns_, "adult-spec"}).resource_version(), version);
  // It is deleted, and the job runs with its own.
  ASSERT_THAT(client_->Delete(kube::resources::ConfigMaps(), {ns_, "adult-spec"}), base::IsOk());
  EXPECT_TRUE(WaitForCondition("Running", "True"));
}

// A Secret of the name that earlier versions used, whose token another user knows.
TEST_P(ObjectsTest, ASecretOfAnotherUserGivesAJobNoToken) {
  const Json secret = {{"apiVersion", "v1"},
                       {"kind", "Secret"},
                       {"metadata", {{"name", "adult-token"}, {"namespace", ns_}}},
                       {"stringData", {{"token", "known to another user"}}}};
  Apply(kube::resources::Secrets(), secret);
  const std::string version = Get(kube::resources::Secrets(), {ns_, "adult-token"}).resource_version();
  RunJob();
  EXPECT_EQ(Get(kube::resources::Secrets(), {ns_, "adult-token"}).resource_version(), version);
  const kube::Object own = Get(kube::resources::Secrets(), {ns_, SecretOf("adult")});
  EXPECT_GE(own.String("/data/token").size(), 64u);
  for (const std::string& pod : PodNames()) {
    EXPECT_THAT(Get(kube::resources::Pods(), {ns_, pod}).At("/spec/volumes").dump(), HasSubstr(own.key().name)) << pod;
  }
}

// The objects that a user may delete from a running job.
std::vector<std::pair<kube::Resource, std::string>> KeptObjects(const std::string& secret) {
  return {{kube::resources::Services(), "adult-coordinator"},
          {kube::resources::ConfigMaps(), "adult-spec"},
          {kube::resources::Secrets(), secret},
          {kube::resources::NetworkPolicies(), "adult"},
          {kube::resources::PodDisruptionBudgets(), "adult"}};
}

// What the operator writes: without what the API server adds to metadata, and without the status.
Json Written(const kube::Object& object) {
  Json json = object.json();
  const Json metadata = json["metadata"];
  json.erase("status");
  json["metadata"] = {{"labels", metadata["labels"]}, {"ownerReferences", metadata["ownerReferences"]}};
  return json;
}

TEST_P(ObjectsTest, DeletedObjectsAreCreatedAgainAsTheyWere) {
  RunJob();
  std::vector<kube::Object> before;
  const auto objects = KeptObjects(SecretOf("adult"));
  for (const auto& [resource, name] : objects) {
    before.push_back(Get(resource, {ns_, name}));
    ASSERT_TRUE(before.back().controller().has_value());
    ASSERT_THAT(client_->Delete(resource, {ns_, name}), base::IsOk());
  }
  for (size_t i = 0; i < before.size(); ++i) {
    const auto& [resource, name] = objects[i];
    SCOPED_TRACE(resource.kind);
    ASSERT_TRUE(Eventually(
        [&] {
          const auto now = client_->Get(resource, {ns_, name});
          if (!now.ok()) clock_.Advance(base::seconds(1));  // the Secret is looked at once a minute
          return now.ok() && now->uid() != before[i].uid();
        },
        resource.kind + " is created again"));
    const kube::Object now = Get(resource, {ns_, name});
    EXPECT_EQ(Written(now), Written(before[i]));
  }
  EXPECT_TRUE(Eventually([&] { return HasEvent("ObjectRestored", "Service adult-coordinator was deleted"); }, "event"));
  EXPECT_EQ(Status().plan->generation, 1) << "the job trained on";
}

TEST_P(ObjectsTest, EditedObjectsAreRestoredAndFieldsOfOthersStay) {
  RunJob();
  const auto edit = [&](const kube::Resource& resource, const std::string& name, const Json& patch) {
    ASSERT_THAT(client_->Patch(resource, {ns_, name}, kube::PatchType::kMerge, patch), base::IsOk());
  };
  const kube::Resource services = kube::resources::Services();
  const kube::Resource policies = kube::resources::NetworkPolicies();
  const kube::Resource budgets = kube::resources::PodDisruptionBudgets();
  const Json selector = Get(services, {ns_, "adult-coordinator"}).At("/spec/selector");
  const Json ingress = Get(policies, {ns_, "adult"}).At("/spec/ingress");
  edit(services, "adult-coordinator",
       {{"metadata", {{"labels", {{"team", "ads"}}}, {"annotations", {{"note", "x"}}}}},
        {"spec", {{"selector", {{"app", "other"}}}}}});
  edit(policies, "adult", {{"spec", {{"ingress", Json::array({Json::object()})}}}});
  edit(budgets, "adult", {{"spec", {{"minAvailable", 0}}}, {"metadata", {{"labels", {{kJobNameLabel, nullptr}}}}}});
  EXPECT_TRUE(Eventually(
      [&] {
        return Get(services, {ns_, "adult-coordinator"}).At("/spec/selector") == selector;
      },
      "the selector"));
  EXPECT_TRUE(Eventually([&] { return Get(policies, {ns_, "adult"}).At("/spec/ingress") == ingress; }, "ingress"));
  EXPECT_TRUE(Eventually([&] { return Get(budgets, {ns_, "adult"}).At("/spec/minAvailable") == 4; }, "the budget"));
  EXPECT_EQ(Get(budgets, {ns_, "adult"}).label(kJobNameLabel), "adult");
  EXPECT_EQ(Get(services, {ns_, "adult-coordinator"}).label("team"), "ads");
  EXPECT_EQ(Get(services, {ns_, "adult-coordinator"}).annotation("note"), "x");
  // The label by which the operator finds it is restored as well.
  edit(services, "adult-coordinator", {{"metadata", {{"labels", {{"app.kubernetes.io/managed-by", nullptr}}}}}});
  EXPECT_TRUE(Eventually(
      [&] {
        clock_.Advance(base::seconds(1));
        const kube::Object now = Get(services, {ns_, "adult-coordinator"});
        return now.label("app.kubernetes.io/managed-by") == "medley-operator";
      },
      "the label"));
  // At rest nothing is written.
  Settle();
  const std::string version = Get(services, {ns_, "adult-coordinator"}).resource_version();
  Settle();
  EXPECT_EQ(Get(services, {ns_, "adult-coordinator"}).resource_version(), version);
}

TEST_P(ObjectsTest, AnotherControllerThatEditsWithoutEndMakesNoHotLoop) {
  RunJob();
  const kube::Resource policies = kube::resources::NetworkPolicies();
  const Json wanted = Get(policies, {ns_, "adult"}).At("/spec/ingress");
  const Json open = {{"spec", {{"ingress", Json::array({Json::object()})}}}};
  int restored = 0;
  for (int i = 0; i < 100; ++i) {  // as fast as it can
    restored += Get(policies, {ns_, "adult"}).At("/spec/ingress") == wanted ? 1 : 0;
    ASSERT_THAT(client_->Patch(policies, {ns_, "adult"}, kube::PatchType::kMerge, open), base::IsOk());
    Pump();
  }
  EXPECT_LE(restored, 8);
  EXPECT_TRUE(Eventually(
      [&] {
        clock_.Advance(base::seconds(1));
        return Get(policies, {ns_, "adult"}).At("/spec/ingress") == wanted;
      },
      "the last edit is undone"));
}

TEST_P(ObjectsTest, ObjectsOfOthersAreNotCreatedAgain) {
  RunJob();
  Json service = {{"apiVersion", "v1"},
                  {"kind", "Service"},
                  {"metadata", {{"name", "other-coordinator"}, {"namespace", ns_}}},
                  {"spec", {{"clusterIP", "None"}, {"selector", {{"app", "x"}}}, {"ports", {{{"port", 1}}}}}}};
  Apply(kube::resources::Services(), service);
  // With the labels of the job, but without its owner and with another name.
  service["metadata"]["name"] = "labelled";
  service["metadata"]["labels"] = {{kJobNameLabel, "adult"}, {"app.kubernetes.io/managed-by", "medley-operator"}};
  Apply(kube::resources::Services(), service);
  for (const char* name : {"other-coordinator", "labelled"}) {
    ASSERT_THAT(client_->Delete(kube::resources::Services(), {ns_, name}), base::IsOk());
  }
  Settle();
  for (const char* name : {"other-coordinator", "labelled"}) {
    EXPECT_FALSE(Exists(kube::resources::Services(), {ns_, name}));
  }
  EXPECT_FALSE(HasEvent("ObjectRestored"));
}

TEST_P(ObjectsTest, ADeletedPodGroupIsCreatedAgain) {
  InstallPodGroups(PodGroupKind::kVolcano);
  Apply(TrainingJobs(), Scheduled({{"schedulerName", "volcano"}}));
  const kube::Resource groups = PodGroups(PodGroupKind::kVolcano);
  ASSERT_TRUE(WaitForCondition("Running", "True"));
  ASSERT_THAT(client_->Delete(groups, {ns_, "adult"}), base::IsOk());
  EXPECT_TRUE(Eventually(
      [&] {
        clock_.Advance(base::seconds(1));  // it is looked at once a minute
        return Exists(groups, {ns_, "adult"});
      },
      "the group"));
  RemovePodGroups();
}

// The operator creates no pods, and reads, checks, writes and reports nothing either.
TEST_P(ObjectsTest, AJobOfAnotherManagerIsNotTouchedAtAll) {
  Json job = JobJson();
  job["spec"]["runPolicy"]["managedBy"] = "kueue.x-k8s.io/multikueue";
  job["spec"]["resources"]["pools"] = {"no-such-pool"};
  Json invalid = job;
  invalid["metadata"]["name"] = "invalid";
  // What only the operator finds: vectors of a length that the layer before does not have.
  invalid["spec"]["model"] = {{"layers",
                               {{{"name", "fc"}, {"kind", "FullyConnected"}, {"out", 4}},
                                {{"name", "pairs"}, {"kind", "Interaction"}, {"dim", 3}},
                                {{"name", "out"}, {"kind", "FullyConnected"}, {"out", 1}},
                                {{"name", "loss"}, {"kind", "Loss"}}}}};
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
  const std::string token = Get(kube::resources::Secrets(), {ns_, SecretOf("adult")}).String("/data/token");
  ASSERT_THAT(client_->Delete(TrainingJobs(), {ns_, "adult"}), base::IsOk());
  ASSERT_TRUE(Eventually([&] { return !Exists(TrainingJobs(), {ns_, "adult"}); }, "deleted"));
  coordinator_.Forget();
  RunJob();
  const kube::Object secret = Get(kube::resources::Secrets(), {ns_, SecretOf("adult")});
  EXPECT_NE(secret.String("/data/token"), token);
  EXPECT_EQ(secret.controller()->uid, Get(TrainingJobs(), {ns_, "adult"}).uid());
}

}  // namespace
}  // namespace medley::ops
