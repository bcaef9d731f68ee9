// Objects of the job that another client deletes, edits or copies.
#include <gmock/gmock.h>

#include "common/base/status.h"
#include "common/base/testing/status_matchers.h"
#include "operator/builders/credentials.h"
#include "operator/builders/objects.h"
#include "operator/builders/worker_env.h"
#include "tests/unit/operator/lifecycle/fake_cluster.h"

namespace medley::ops::lifecycle {
namespace {

using kube::Json;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class KeepingTest : public testing::Test {
 protected:
  void SetUp() override { cluster_.PassFor(base::seconds(70)); }  // everything has been looked at once
  void TearDown() override { EXPECT_THAT(cluster_.violations(), IsEmpty()); }
  Json Spec(const std::string& kind, const std::string& name) {
    const Json* object = cluster_.FindObject(kind, name);
    return object == nullptr ? Json() : object->value("spec", Json());
  }
  int CountEvents(const std::string& part) {
    return static_cast<int>(std::count_if(cluster_.events().begin(), cluster_.events().end(),
                                          [&](const auto& event) { return event.find(part) != std::string::npos; }));
  }
  FakeCluster cluster_ = FakeCluster::Training();
};

TEST_F(KeepingTest, NothingIsWrittenWhileNobodyTouchesAnything) {
  for (int i = 0; i < 200; ++i) {
    cluster_.Advance(base::seconds(7));
    cluster_.StepCluster();
    EXPECT_THAT(cluster_.Pass().actions, Each(Not(testing::AnyOf(HasSubstr("apply"), HasSubstr("ensure")))));
  }
  EXPECT_EQ(CountEvents("ObjectRestored"), 0);
}

struct Named {
  std::string kind;
  std::string name;
};

class DeletedTest : public KeepingTest, public testing::WithParamInterface<Named> {};

TEST_P(DeletedTest, IsCreatedAgainAsItWas) {
  const auto& [kind, name] = GetParam();
  Json before = *cluster_.FindObject(kind, name);
  cluster_.EraseObject(kind, name);
  cluster_.PassFor(base::seconds(70));
  const Json* now = cluster_.FindObject(kind, name);
  ASSERT_NE(now, nullptr) << cluster_.trace();
  before["metadata"].erase("uid");
  before["metadata"].erase("resourceVersion");
  Json after = *now;
  after["metadata"].erase("uid");
  after["metadata"].erase("resourceVersion");
  EXPECT_EQ(before, after);
  EXPECT_EQ(CountEvents("ObjectRestored: " + kind + " " + name + " was deleted"), 1) << cluster_.trace();
  EXPECT_EQ(cluster_.Reason(kRunningCondition), "True/GenerationCommitted");
}

INSTANTIATE_TEST_SUITE_P(All, DeletedTest,
                         testing::Values(Named{"Service", "adult-coordinator"}, Named{"NetworkPolicy", "adult"},
                                         Named{"PodDisruptionBudget", "adult"}, Named{"ConfigMap", "adult-spec"},
                                         Named{"Secret", FakeCluster().SecretName()}),
                         [](const auto& each) { return each.param.kind; });

struct Edit {
  Named object;
  Json patch;
};

class EditedTest : public KeepingTest, public testing::WithParamInterface<Edit> {};

TEST_P(EditedTest, IsRestored) {
  const auto& [object, patch] = GetParam();
  const Json before = Spec(object.kind, object.name);
  cluster_.EditObject(object.kind, object.name, patch);
  EXPECT_THAT(cluster_.Pass().actions, Contains("apply " + object.kind + " " + object.name));
  EXPECT_EQ(Spec(object.kind, object.name), before);
  EXPECT_EQ(cluster_.FindObject(object.kind, object.name)->at("metadata").at("labels").at("medley.dev/job-name"),
            "adult");
  EXPECT_EQ(CountEvents("was changed by another client"), 1);
}

INSTANTIATE_TEST_SUITE_P(
    All, EditedTest,
    testing::Values(Edit{{"Service", "adult-coordinator"}, {{"spec", {{"selector", {{"app", "mine"}}}}}}},
                    Edit{{"Service", "adult-coordinator"},
                         {{"metadata", {{"labels", {{"medley.dev/job-name", nullptr}}}}}}},
                    Edit{{"NetworkPolicy", "adult"}, {{"spec", {{"ingress", Json::array({Json::object()})}}}}},
                    Edit{{"PodDisruptionBudget", "adult"}, {{"spec", {{"minAvailable", 0}}}}}));

TEST_F(KeepingTest, LabelsAndAnnotationsOfOthersStay) {
  cluster_.EditObject("Service", "adult-coordinator",
                      {{"metadata", {{"labels", {{"team", "ads"}}}, {"annotations", {{"note", "x"}}}}}});
  EXPECT_THAT(cluster_.Pass().actions, Not(Contains(HasSubstr("Service"))));
}

TEST_F(KeepingTest, AnotherControllerThatEditsWithoutEndMakesNoHotLoop) {
  for (int second = 0; second < 600; ++second) {
    cluster_.EditObject("NetworkPolicy", "adult", {{"spec", {{"ingress", Json::array({{{"n", second}}})}}}});
    cluster_.PassFor(base::seconds(1));
  }
  const int restores = CountEvents("ObjectRestored");
  EXPECT_GE(restores, 10) << "at least one a minute";
  EXPECT_LE(restores, 16) << "1, 2, 4, ... 60 s";
  cluster_.PassFor(base::seconds(61));
  EXPECT_NE(Spec("NetworkPolicy", "adult")["ingress"].size(), 1u) << "the last edit is undone all the same";
}

TEST_F(KeepingTest, AnObjectOfAnotherOwnerIsNotTouchedAndTheJobGoesOn) {
  Json theirs = *cluster_.FindObject("Service", "adult-coordinator");
  theirs["metadata"]["uid"] = "theirs";
  theirs["metadata"].erase("ownerReferences");
  theirs["spec"] = {{"selector", {{"app", "theirs"}}}};
  cluster_.EraseObject("Service", "adult-coordinator");
  cluster_.PutObject("Service", theirs);
  for (int i = 0; i < 30; ++i) {
    cluster_.PassFor(base::seconds(10));
    ASSERT_EQ(Spec("Service", "adult-coordinator"), theirs["spec"]);
  }
  EXPECT_TRUE(cluster_.HasEvent("NameTaken", "Service")) << cluster_.trace();
  EXPECT_LE(CountEvents("NameTaken"), 7) << "reported at most once a minute";
  EXPECT_EQ(cluster_.Reason(kRunningCondition), "True/GenerationCommitted");
  EXPECT_EQ(cluster_.Reason(kNamesAvailableCondition), "False/NameTaken");
  EXPECT_THAT(cluster_.Message(kNamesAvailableCondition),
              HasSubstr("adult-coordinator belongs to no controller, and the job needs an object of this name"));
  cluster_.DeletePod("adult-0-a-1");
  cluster_.PassFor(base::seconds(10));
  EXPECT_TRUE(cluster_.pod_names().contains("adult-0-a-1")) << "members are still replaced";
  cluster_.RestartOperator();
  cluster_.PassFor(base::seconds(10));
  EXPECT_EQ(cluster_.Reason(kNamesAvailableCondition), "False/NameTaken");
  cluster_.EraseObject("Service", "adult-coordinator");
  cluster_.PassFor(base::seconds(61));
  EXPECT_EQ(cluster_.Reason(kNamesAvailableCondition), "True/NamesFree");
}

TEST_F(KeepingTest, AnObjectWithoutAnOwnerIsReportedAndCreatedAgainWhenItIsDeleted) {
  cluster_.EditObject("Service", "adult-coordinator", {{"metadata", {{"ownerReferences", nullptr}}}});
  cluster_.PassFor(base::seconds(5));
  EXPECT_TRUE(cluster_.HasEvent("NameTaken", "Service")) << cluster_.trace();
  cluster_.EraseObject("Service", "adult-coordinator");
  cluster_.PassFor(base::seconds(61));
  ASSERT_NE(cluster_.FindObject("Service", "adult-coordinator"), nullptr) << cluster_.trace();
  EXPECT_TRUE(kube::Object(*cluster_.FindObject("Service", "adult-coordinator")).controller().has_value());
}

TEST_F(KeepingTest, TheSecretIsNeverReadAndComesBackWhenAForeignOneIsDeleted) {
  const std::string name = cluster_.SecretName();
  const Json own = *cluster_.FindObject("Secret", name);
  Json theirs = own;
  theirs["data"]["token"] = "b3RoZXI=";
  cluster_.PutObject("Secret", theirs);
  for (int i = 0; i < 70; ++i) {
    cluster_.Advance(base::seconds(1));
    cluster_.StepCluster();
    EXPECT_THAT(cluster_.Pass().actions, Not(Contains(HasSubstr("apply Secret"))));
  }
  EXPECT_EQ(cluster_.FindObject("Secret", name)->at("data"), theirs["data"]);
  EXPECT_EQ(cluster_.secrets_read, 0);
  EXPECT_EQ(cluster_.Reason(kRunningCondition), "True/GenerationCommitted");
  cluster_.EraseObject("Secret", name);
  cluster_.PassFor(base::seconds(61));
  ASSERT_NE(cluster_.FindObject("Secret", name), nullptr);
  EXPECT_EQ(cluster_.FindObject("Secret", name)->at("data"), own["data"]);
}

// A quota of Secrets refuses every attempt to create one, also of one that exists.
TEST_F(KeepingTest, ASecretThatCannotBeCreatedDoesNotHoldAJobThatRuns) {
  cluster_.failures["create Secret"] = base::PermissionDenied("exceeded quota: secrets");
  cluster_.RestartOperator();
  cluster_.PassFor(base::seconds(120));
  EXPECT_EQ(cluster_.Reason(kRunningCondition), "True/GenerationCommitted");
  EXPECT_EQ(CountEvents("TokenLost"), 0);
}

class TokenTest : public KeepingTest {
 protected:
  void SetUp() override {
    KeepingTest::SetUp();
    before_ = cluster_.pods_as_json();
  }
  void ExpectItTrainsAsBefore() {
    EXPECT_EQ(CountEvents("TokenLost"), 0) << cluster_.trace();
    EXPECT_EQ(cluster_.pods_as_json(), before_);
    cluster_.coordinator().samples_done += 5;  // the operator hears it only with the right token
    cluster_.PassFor(base::seconds(60));
    ASSERT_TRUE(cluster_.status().observed);
    EXPECT_EQ(cluster_.status().observed->samples, cluster_.coordinator().samples_done);
  }
  // The Secret and the pods that an earlier operator has made: a random token, and another fingerprint of it.
  void MakeEarlier(const std::string& owner_uid = "job-1") {
    Json secret = *cluster_.FindObject("Secret", cluster_.SecretName());
    secret["metadata"]["name"] = "adult-token";
    secret["metadata"]["ownerReferences"][0]["uid"] = owner_uid;
    secret["data"]["token"] = "cmFuZG9t";
    cluster_.EraseObject("Secret", cluster_.SecretName());
    cluster_.PutObject("Secret", secret);
    for (auto& [name, pod] : before_) {
      pod["metadata"]["annotations"]["medley.dev/token"] = "0123456789abcdef";
      SetVariable(kFingerprintVariable, "", pod["spec"]["containers"][0]);
      cluster_.PutPod(name, pod);
    }
    cluster_.SetCoordinatorToken("random");
    cluster_.RestartOperator();
    cluster_.PassFor(base::seconds(120));
  }
  std::map<std::string, Json> before_;  // pods
};

TEST_F(TokenTest, AnotherOperatorMakesTheSameToken) {
  cluster_.EraseObject("Secret", cluster_.SecretName());
  cluster_.RestartOperator();
  cluster_.PassFor(base::seconds(120));
  ExpectItTrainsAsBefore();
  EXPECT_TRUE(cluster_.Has("Secret", cluster_.SecretName()));
  EXPECT_EQ(cluster_.secrets_read, 0);
}

TEST_F(TokenTest, AJobKeepsThePreviousKey) {
  const std::string secret = cluster_.SecretName();
  cluster_.operator_keys = {"key-2", "key-1"};
  cluster_.RestartOperator();
  cluster_.PassFor(base::seconds(120));
  ExpectItTrainsAsBefore();
  EXPECT_FALSE(cluster_.Has("Secret", cluster_.SecretName())) << "only jobs without pods take the new key";
  cluster_.DeletePod("adult-0-a-1");
  ASSERT_TRUE(cluster_.RunUntilTraining()) << cluster_.trace();
  const Json made = cluster_.pods().at("adult-0-a-1").json();
  EXPECT_THAT(made.dump(), HasSubstr("\"secretName\":\"" + secret + "\""));
}

TEST_F(TokenTest, ATokenOfAnEarlierOperatorIsUsedWhereItMayBeRead) {
  MakeEarlier();
  ExpectItTrainsAsBefore();
  EXPECT_EQ(cluster_.secrets_read, 1);
  EXPECT_FALSE(cluster_.Has("Secret", cluster_.SecretName()));
  cluster_.DeletePod("adult-0-a-1");
  ASSERT_TRUE(cluster_.RunUntilTraining()) << cluster_.trace();
  EXPECT_THAT(cluster_.pods().at("adult-0-a-1").json().dump(), HasSubstr("\"secretName\":\"adult-token\""));
  EXPECT_EQ(cluster_.pods().at("adult-0-a-0").json(), before_.at("adult-0-a-0"));
}

TEST_F(TokenTest, ATokenOfAnEarlierOperatorThatMayNotBeReadIsLost) {
  cluster_.failures["get Secret"] = base::PermissionDenied("secrets is forbidden");
  MakeEarlier();
  EXPECT_EQ(CountEvents("TokenLost"), 1) << cluster_.trace();
  EXPECT_EQ(cluster_.pods_as_json(), before_);
  cluster_.DeletePod("adult-0-a-1");
  ASSERT_TRUE(cluster_.RunUntilTraining()) << cluster_.trace();
  for (const auto& [name, pod] : cluster_.pods()) {
    EXPECT_NE(pod.uid(), before_.at(name).at("metadata").at("uid"));
  }
}

TEST_F(TokenTest, ASecretOfAnotherOwnerIsNotUsed) {
  MakeEarlier("another");
  EXPECT_EQ(CountEvents("TokenLost"), 1) << cluster_.trace();
}

class LostTokenTest : public TokenTest {
 protected:
  void SetUp() override {
    TokenTest::SetUp();
    cluster_.operator_keys = {"key-2"};
    cluster_.RestartOperator();
    cluster_.PassFor(base::seconds(120));
    ASSERT_TRUE(cluster_.HasEvent("TokenLost", "cannot derive or read")) << cluster_.trace();
  }
  bool Replaced(const std::string& pod) { return cluster_.pods().at(pod).uid() != before_.at(pod)["metadata"]["uid"]; }
};

TEST_F(LostTokenTest, AJobTrainsOnUntilItsEnd) {
  EXPECT_EQ(CountEvents("TokenLost"), 1);
  EXPECT_EQ(cluster_.pods_as_json(), before_);
  EXPECT_EQ(cluster_.Reason(kRunningCondition), "True/GenerationCommitted");
  cluster_.FailPod("adult-coordinator", 0);
  cluster_.PassFor(base::seconds(10));
  EXPECT_TRUE(cluster_.status().finished()) << cluster_.trace();
  EXPECT_EQ(cluster_.Reason(kCompleteCondition), "True/TrainingComplete");
}

TEST_F(LostTokenTest, AJobThatLosesAMemberGetsNewPods) {
  cluster_.DeletePod("adult-0-a-1");
  ASSERT_TRUE(cluster_.RunUntilTraining()) << cluster_.trace();
  for (const char* pod : {"adult-coordinator", "adult-0-a-0", "adult-0-a-1"}) EXPECT_TRUE(Replaced(pod)) << pod;
  EXPECT_EQ(cluster_.status().counted_restarts, 0) << "not the job's fault";
  EXPECT_EQ(CountEvents("TokenLost"), 1);
}

TEST_F(LostTokenTest, ACoordinatorThatReadTheNewTokenGetsNewMembers) {
  cluster_.SetPodStatus("adult-coordinator",
                        {{"containerStatuses", Json::array({{{"name", "worker"}, {"restartCount", 1}}})}});
  ASSERT_TRUE(cluster_.RunUntilTraining()) << cluster_.trace();
  for (const char* pod : {"adult-coordinator", "adult-0-a-0", "adult-0-a-1"}) EXPECT_TRUE(Replaced(pod)) << pod;
}

TEST_F(KeepingTest, ACacheThatIsBehindCausesNoWrite) {
  World world = cluster_.Observe();
  world.steady += base::seconds(100);
  world.objects.erase("Service");  // as if the watch had not delivered it yet
  std::vector<std::string> actions;
  const Respond respond = [&](const Action& action) {
    if (!IsRead(action)) actions.push_back(Describe(action));
    return cluster_.Carry(action);
  };
  const Decision decision = Decide(cluster_.Input(), world, cluster_.memory(), respond, cluster_.options);
  EXPECT_THAT(actions, Not(Contains(HasSubstr("Service"))));
  for (const Effect& effect : decision.effects) {
    const auto* event = std::get_if<PublishEvent>(&effect);
    EXPECT_TRUE(event == nullptr || event->reason != "ObjectRestored");
  }
}

// Plans `units` units on pool b.
std::function<AskForPlan::Outcome(const model::PlanRequest&)> PlanOnB(int units) {
  return [units](const model::PlanRequest& request) {
    AskForPlan::Outcome outcome = FakeCluster::FirstPoolWithRoom(request);
    if (!outcome.result.ok() || !outcome.result->execution_plan) return outcome;
    outcome.result->execution_plan->stages[0].groups[0] = {"b", units, 1};
    outcome.result->plan->stages[0].resource_type = "b";
    outcome.result->plan->stages[0].units = units;
    return outcome;
  };
}

TEST_F(KeepingTest, ThePodGroupNeverAsksForLessThanWhatRuns) {
  cluster_.SetSpec({{"runPolicy", {{"schedulingPolicy", {{"schedulerName", "volcano"}}}}}});
  cluster_.PassFor(base::seconds(3));
  EXPECT_EQ(Spec("PodGroup", "adult")["minMember"], 2);
  cluster_.blocked_nodes = {"b-0", "b-1"};
  cluster_.planner = PlanOnB(1);
  cluster_.SetSpec({{"objective", {{"minThroughput", 1500}}}});
  cluster_.PassFor(base::seconds(20));
  ASSERT_EQ(cluster_.stored_plan()->slots.size(), 1u) << cluster_.trace();
  EXPECT_EQ(Spec("PodGroup", "adult")["minMember"], 2) << "two members train until the switch";
  // A member in force is lost: a group that asked for more pods than exist would place none.
  cluster_.DeletePod("adult-0-a-1");
  cluster_.PassFor(base::seconds(3));
  EXPECT_EQ(Spec("PodGroup", "adult")["minMember"], 1);
  cluster_.blocked_nodes.clear();
  cluster_.PassFor(base::seconds(20));
  EXPECT_EQ(Spec("PodGroup", "adult")["minMember"], 1) << cluster_.trace();
  cluster_.EraseObject("PodGroup", "adult");
  cluster_.PassFor(base::seconds(61));
  EXPECT_EQ(Spec("PodGroup", "adult")["minMember"], 1) << "restored within a minute";
}

TEST_F(KeepingTest, TheBudgetFollowsTheGenerationInForce) {
  EXPECT_EQ(Spec("PodDisruptionBudget", "adult")["minAvailable"], 2);  // two members and the coordinator, less one
  // Three units are planned, and their pods find no node: the old generation stays in force.
  cluster_.pools["b"].price = 0.1;
  cluster_.blocked_nodes = {"b-0", "b-1"};
  cluster_.planner = PlanOnB(3);
  cluster_.SetSpec({{"objective", {{"minThroughput", 1500}}}});
  cluster_.PassFor(base::seconds(20));
  ASSERT_EQ(cluster_.stored_plan()->slots.size(), 3u) << cluster_.trace();
  EXPECT_EQ(Spec("PodDisruptionBudget", "adult")["minAvailable"], 2);
  // Also when it is deleted meanwhile, and after a restart of the operator.
  cluster_.EraseObject("PodDisruptionBudget", "adult");
  cluster_.RestartOperator();
  cluster_.PassFor(base::seconds(3));
  EXPECT_EQ(Spec("PodDisruptionBudget", "adult")["minAvailable"], 2) << cluster_.trace();
  cluster_.blocked_nodes.clear();
  cluster_.PassFor(base::seconds(20));
  EXPECT_EQ(Spec("PodDisruptionBudget", "adult")["minAvailable"], 3) << cluster_.trace();
}

// --- Pods that another client has copied from pods of the job, after it deleted these.

class CopiesTest : public testing::TestWithParam<const char*> {
 protected:
  void TearDown() override { EXPECT_THAT(cluster_.violations(), IsEmpty()) << cluster_.trace(); }
  bool Trains() { return cluster_.RunUntilTraining() && cluster_.Reason(kRunningCondition).starts_with("True"); }
  std::string UidOf(const std::string& name) const {
    const auto pod = cluster_.pods().find(name);
    return pod == cluster_.pods().end() ? "" : pod->second.uid();
  }
  FakeCluster cluster_ = FakeCluster::Training();
};

INSTANTIATE_TEST_SUITE_P(OfEachRole, CopiesTest, testing::Values("adult-0-a-0", "adult-coordinator"));

TEST_P(CopiesTest, TheJobDeletesItAndTrainsOnWithAPodOfItsOwn) {
  cluster_.CopyPod(GetParam());
  const std::string copy = UidOf(GetParam());
  EXPECT_TRUE(Trains()) << cluster_.trace();
  EXPECT_NE(UidOf(GetParam()), copy);
  EXPECT_TRUE(cluster_.HasEvent("PodCopied", GetParam()));
}

// A finalizer keeps it. The job takes another name instead of waiting.
TEST_P(CopiesTest, ACopyThatStaysHoldsUpNoJob) {
  cluster_.hung_pods.insert(GetParam());
  cluster_.CopyPod(GetParam());
  const std::string copy = UidOf(GetParam());
  EXPECT_TRUE(Trains()) << cluster_.trace();
  EXPECT_EQ(UidOf(GetParam()), copy) << "the finalizer keeps it";
}

// A webhook of the namespace refuses the deletion: the rest of the job goes on.
TEST_P(CopiesTest, ACopyThatCannotBeDeletedIsReported) {
  cluster_.CopyPod(GetParam());
  cluster_.failures[std::string("delete pods ") + GetParam()] = absl::PermissionDeniedError("a webhook says no");
  const PassLog pass = cluster_.Pass();
  EXPECT_TRUE(pass.status.ok()) << pass.status;
  EXPECT_THAT(pass.events, Contains(HasSubstr("a webhook says no")));
  ASSERT_TRUE(pass.requeue_after.has_value());
}

// Restarts of the operator change nothing: the copy is known by what the API server says of it.
TEST_P(CopiesTest, ARestartedOperatorDeletesItToo) {
  cluster_.CopyPod(GetParam());
  cluster_.RestartOperator();
  EXPECT_TRUE(Trains()) << cluster_.trace();
}

TEST_F(CopiesTest, ADeletedJobDoesNotWaitForACopy) {
  cluster_.CopyPod("adult-0-a-0");
  cluster_.hung_pods.insert("adult-0-a-0");
  cluster_.job["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  cluster_.PassFor(base::seconds(60));
  EXPECT_TRUE(cluster_.job["metadata"].value("finalizers", kube::Json::array()).empty()) << cluster_.trace();
}

}  // namespace
}  // namespace medley::ops::lifecycle
