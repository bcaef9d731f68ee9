#include "operator/lifecycle/stored_plan.h"

#include <gmock/gmock.h>

#include <functional>

#include "common/base/testing/status_matchers.h"
#include "operator/api/resources.h"
#include "tests/unit/operator/lifecycle/fake_cluster.h"

namespace medley::ops::lifecycle {
namespace {

using base::IsOk;
using base::StatusIs;
using kube::Json;
using testing::Contains;
using testing::HasSubstr;

const Json* StoredPlan(const FakeCluster& cluster) { return cluster.FindObject("ConfigMap", "adult-plan"); }

bool IsGenuine(const FakeCluster& cluster) {
  const Json* map = StoredPlan(cluster);
  return map != nullptr && cluster.options.record_keys.Check(RecordKind::kPlan, "job-1", kube::Object(*map)).ok();
}

// The record with another pool, as an editor of the ConfigMap would write it.
std::string OnPool(const FakeCluster& cluster, const char* key, const std::string& pool) {
  std::string text = (*StoredPlan(cluster))["data"][key];
  for (const char* from : {"\"a\"", "-a-"}) {
    const std::string to = from[0] == '"' ? "\"" + pool + "\"" : "-" + pool + "-";
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
      text.replace(at, std::string(from).size(), to);
    }
  }
  return text;
}

Json ForgedData(const FakeCluster& cluster) {
  return {{"data",
           {{"plan.json", OnPool(cluster, "plan.json", "c")}, {"record.json", OnPool(cluster, "record.json", "c")}}}};
}

// Whatever else than the operator may have put there: reported, and made anew; the job trains on.
TEST(StoredPlanTest, APlanOfAnotherClientIsNotReadBack) {
  using Edit = std::function<Json(const FakeCluster&)>;
  const Json unsign = {{"metadata", {{"annotations", {{kSignatureAnnotation, nullptr}}}}}};
  const std::pair<const char*, Edit> edits[] = {
      {"another pool", ForgedData},
      {"another pool, unsigned",
       [&](const FakeCluster& cluster) {
         Json patch = ForgedData(cluster);
         patch.update(unsign);
         return patch;
       }},
      {"of an operator that did not sign", [&](const FakeCluster&) { return unsign; }},
      {"a fallback of its own",
       [](const FakeCluster& cluster) {
         return Json{{"data",
                      {{"fallback-plan.json", OnPool(cluster, "plan.json", "c")},
                       {"fallback-record.json", OnPool(cluster, "record.json", "c")}}}};
       }},
      {"no JSON",
       [](const FakeCluster&) {
         return Json{{"data", {{"plan.json", "{"}}}};
       }},
      {"no data",
       [](const FakeCluster&) {
         return Json{{"data", nullptr}};
       }},
  };
  for (const auto& [what, edit] : edits) {
    SCOPED_TRACE(what);
    FakeCluster cluster = FakeCluster::Training();
    const std::set<std::string> pods = cluster.pod_names();
    cluster.EditObject("ConfigMap", "adult-plan", edit(cluster));
    cluster.RestartOperator();
    ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
    EXPECT_TRUE(IsGenuine(cluster));
    EXPECT_EQ(cluster.pod_names(), pods) << "the members serve under the new plan";
    EXPECT_TRUE(cluster.HasEvent("RecordRefused", "ConfigMap adult-plan"));
    EXPECT_EQ(cluster.Reason(kRecordsGenuineCondition), "True/RecordRenewed");
    EXPECT_THAT(cluster.violations(), testing::IsEmpty());
    EXPECT_EQ(std::ranges::count_if(cluster.events(),
                                    [](const std::string& event) { return event.starts_with("RecordRefused"); }),
              1);
  }
}

TEST(StoredPlanTest, ARunningOperatorWritesItsPlanAgain) {
  const std::pair<const char*, std::function<void(FakeCluster&)>> attacks[] = {
      {"edited", [](FakeCluster& cluster) { cluster.EditObject("ConfigMap", "adult-plan", ForgedData(cluster)); }},
      {"deleted", [](FakeCluster& cluster) { cluster.EraseObject("ConfigMap", "adult-plan"); }},
      {"owner removed",
       [](FakeCluster& cluster) {
         cluster.EditObject("ConfigMap", "adult-plan", {{"metadata", {{"ownerReferences", nullptr}}}});
       }},
  };
  for (const auto& [what, attack] : attacks) {
    SCOPED_TRACE(what);
    FakeCluster cluster = FakeCluster::Training();
    cluster.Advance(base::seconds(10));
    const Json data = (*StoredPlan(cluster))["data"];
    const std::set<std::string> pods = cluster.pod_names();
    attack(cluster);
    cluster.Pass();
    ASSERT_NE(StoredPlan(cluster), nullptr);
    EXPECT_EQ((*StoredPlan(cluster))["data"], data);
    EXPECT_TRUE(kube::Object(*StoredPlan(cluster)).controller().has_value());
    EXPECT_TRUE(IsGenuine(cluster));
    EXPECT_EQ(cluster.pod_names(), pods);
    EXPECT_TRUE(cluster.HasEvent("RecordRefused") || cluster.HasEvent("ObjectRestored", "ConfigMap adult-plan"));
  }
}

TEST(StoredPlanTest, AnotherLeaderFindsThePlanAsItIs) {
  FakeCluster cluster = FakeCluster::Training();
  cluster.Advance(base::seconds(10));
  cluster.RestartOperator();
  for (int second = 0; second < 20; ++second) {
    const PassLog log = cluster.Pass();
    EXPECT_THAT(log.actions, testing::Not(testing::Contains(testing::StartsWith("save plan"))));
    cluster.Advance(base::seconds(1));
  }
  EXPECT_FALSE(cluster.HasEvent("ObjectRestored"));
}

// Two clients that disagree make no hot loop.
TEST(StoredPlanTest, APlanThatIsEditedAgainAndAgainIsWrittenAfterGrowingPauses) {
  FakeCluster cluster = FakeCluster::Training();
  cluster.Advance(base::seconds(10));
  int writes = 0;
  for (int second = 0; second < 120; ++second) {
    cluster.EditObject("ConfigMap", "adult-plan", {{"data", {{"plan.json", "{"}}}});
    const PassLog log = cluster.Pass();
    writes += static_cast<int>(
        std::ranges::count_if(log.actions, [](const std::string& action) { return action.starts_with("save plan"); }));
    cluster.Advance(base::seconds(1));
  }
  EXPECT_GE(writes, 3);
  EXPECT_LE(writes, 12);
}

// Signed and well, but of the job before this one, or of no use: it is checked like a plan of the planner.
TEST(StoredPlanTest, APlanThatIsReadBackIsCheckedLikeANewOne) {
  FakeCluster cluster = FakeCluster::Training();
  const PlanRecord good = *cluster.memory().stored_plan.record;
  ASSERT_THAT(CheckPlanRecord(good, "adult", "job-1"), IsOk());
  using Edit = std::function<void(PlanRecord&)>;
  const std::pair<const char*, Edit> edits[] = {
      {"another job", [](PlanRecord& record) { record.plan.job_uid = "job-2"; }},
      {"generation 0", [](PlanRecord& record) { record.plan.generation = 0; }},
      {"last generation", [](PlanRecord& record) { record.plan.generation = INT64_MAX; }},
      {"last term", [](PlanRecord& record) { record.coordinator_term = INT64_MAX; }},
      {"negative term", [](PlanRecord& record) { record.successor_term = -1; }},
      {"coordinator of another job", [](PlanRecord& record) { record.coordinator_pod = "other-coordinator"; }},
      {"successor of another job", [](PlanRecord& record) { record.successor_pod = "adulterous-coordinator"; }},
      {"member of another job", [](PlanRecord& record) { record.slots[0].member = "other-0-a-0"; }},
      {"two members of one name", [](PlanRecord& record) { record.slots[1].member = record.slots[0].member; }},
      {"more members than units",
       [](PlanRecord& record) {
         record.slots.push_back(record.slots.back());
         record.slots.back().member += "0";
       }},
      {"fewer members than units", [](PlanRecord& record) { record.slots.pop_back(); }},
      {"no members", [](PlanRecord& record) { record.slots.clear(); }},
      {"member on another pool", [](PlanRecord& record) { record.slots[0].pool = "c"; }},
      {"more layers than the model", [](PlanRecord& record) { record.layer_names.clear(); }},
      {"no stages", [](PlanRecord& record) { record.plan.stages.clear(); }},
      {"no units", [](PlanRecord& record) { record.plan.stages[0].groups[0].units = 0; }},
  };
  for (const auto& [what, edit] : edits) {
    PlanRecord record = good;
    edit(record);
    EXPECT_THAT(CheckPlanRecord(record, "adult", "job-1"), StatusIs(absl::StatusCode::kInvalidArgument)) << what;
  }
}

TEST(StoredPlanTest, ASignedPlanThatIsInvalidIsMadeAnew) {
  FakeCluster cluster = FakeCluster::Training();
  PlanRecord record = *cluster.memory().stored_plan.record;
  record.slots[0].pool = "c";
  kube::Object map = PlanConfigMap(*cluster.Input().job, record);
  cluster.options.record_keys.Sign(RecordKind::kPlan, "job-1", map);
  cluster.EditObject("ConfigMap", "adult-plan", map.json());
  cluster.RestartOperator();
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
  EXPECT_TRUE(cluster.HasEvent("RecordRefused", "are not those of the plan"));
}

// Pods of the plan that was not believed must not keep the next one from their units forever.
TEST(StoredPlanTest, PodsWithoutAPlanMakeRoomForTheNextOne) {
  FakeCluster cluster = FakeCluster::Training();
  cluster.EraseObject("ConfigMap", "adult-plan");
  cluster.RestartOperator();
  const JobInput input = cluster.Input();
  const World world = cluster.Observe();
  std::vector<std::string> actions;
  const Respond respond = [&](const Action& action) -> std::optional<Answer> {
    actions.push_back(Describe(action));
    if (std::holds_alternative<ReserveUnits>(action)) {
      return Answer(absl::Status(base::FailedPrecondition("held by the job's present pods")));
    }
    return cluster.Carry(action);
  };
  const Decision decision = Decide(input, world, Memory(), respond, cluster.options);
  EXPECT_THAT(decision.status, IsOk());
  EXPECT_THAT(actions, Contains(HasSubstr("delete pods")));
}

TEST(StoredPlanTest, AProfileOfAnotherClientIsMeasuredAgain) {
  FakeCluster cluster = FakeCluster::Training();
  const std::string hash = cluster.Input().profile_hash;
  const std::string name = "medley-profile-" + hash + "-a";
  ASSERT_NE(cluster.FindObject("ConfigMap", name), nullptr);
  const std::string profile = (*cluster.FindObject("ConfigMap", name))["data"]["profile.json"];
  cluster.EditObject("ConfigMap", name, {{"data", {{"profile.json", profile + " "}}}});
  cluster.pools.erase("b");
  cluster.pools.erase("c");
  cluster.EraseObject("ConfigMap", "adult-plan");
  cluster.RestartOperator();
  cluster.Pass();
  EXPECT_FALSE(cluster.memory().stored_plan.record.has_value()) << "planned with a profile of another client";
  EXPECT_EQ(cluster.Reason(kPlannedCondition), "Unknown/Profiling");
}

}  // namespace
}  // namespace medley::ops::lifecycle
