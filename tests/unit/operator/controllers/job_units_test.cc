#include "operator/controllers/job_units.h"

#include "kube/errors.h"
#include "operator/builders/slots.h"
#include "operator/controllers/job_reconciler.h"
#include "operator/records/plan_record.h"
#include "tests/unit/operator/controllers/controllers_test.h"

namespace medley::ops {
namespace {

class RestoreUnitsTest : public ControllersTest {
 protected:
  void SetUp() override { PutPool(5); }
  // The plan of three units that the last leader has stored.
  static kube::Object PlanOf(const kube::Object& object) {
    const auto job = TrainingJob::FromObject(object);
    EXPECT_THAT(job, base::IsOk());
    PlanRecord record;
    record.plan.job_uid = object.uid();
    record.plan.generation = 1;
    record.plan.stages = {{{{0, 1}}, {{"cpu", 3, 1}}, {}, 0}};
    record.layer_names = {"dense"};
    record.slots = AssignSlots(job->name(), record.plan, {}, {}, {});
    kube::Object map = PlanConfigMap(*job, record);
    RecordKeys().Sign(RecordKind::kPlan, object.uid(), map);
    return map;
  }
  static kube::Object Other(kube::Object map) {
    map.mutable_json()["metadata"]["name"] = "another-map-of-the-job";
    return map;
  }
  int Free() const {
    const auto pool = ResourcePool::FromObject(*pools_.Get({"", "cpu"}));
    return capacity_.UnitsOf(*pool, {}).free;
  }
};

TEST_F(RestoreUnitsTest, CachesThatLackTheLatestPlansDoNotMatter) {
  const kube::Object planned = Job("planned", 4);
  client_.ScriptList(kube::ObjectList{{Other(PlanOf(planned))}, "7", "next"});
  client_.ScriptList(kube::ObjectList{{PlanOf(planned)}, "7", ""});
  client_.ScriptList(kube::ObjectList{{planned, Job("waits", 5)}, "7", ""});
  ASSERT_THAT(RestoreUnits(Deps(), "ns", {}), base::IsOk());
  EXPECT_EQ(Free(), 2);
  for (const kube::ListOptions& list : client_.lists()) {
    EXPECT_FALSE(list.resource_version.has_value()) << "a list at resourceVersion 0 may be stale";
    EXPECT_EQ(list.ns, "ns");
  }
  EXPECT_EQ(client_.lists()[1].continue_token, "next");
  EXPECT_TRUE(line_.Take({{"ns", "younger"}, 0, "9"}).has_value()) << "job waits was planned in vain";
}

TEST_F(RestoreUnitsTest, APlanThatAnotherClientHasWrittenHoldsNoUnits) {
  const kube::Object planned = Job("planned", 4);
  kube::Object forged = PlanOf(planned);
  forged.mutable_json()["data"]["record.json"] = "{}";
  client_.ScriptList(kube::ObjectList{{forged}, "7", ""});
  client_.ScriptList(kube::ObjectList{{planned}, "7", ""});
  ASSERT_THAT(RestoreUnits(Deps(), "ns", {}), base::IsOk());
  EXPECT_EQ(Free(), 5);
}

TEST_F(RestoreUnitsTest, AnApiServerThatDoesNotAnswerIsTriedAgain) {
  const kube::Object planned = Job("planned", 4);
  client_.ScriptList(base::Unavailable("the API server restarts"));
  client_.ScriptList(kube::ObjectList{{PlanOf(planned)}, "7", ""});
  client_.ScriptList(kube::ObjectList{{planned}, "7", ""});
  absl::Status restored = base::Internal("did not return");
  std::jthread thread([&] { restored = RestoreUnits(Deps(), "", {}); });
  EXPECT_TRUE(clock_.WaitForSleepers(1));
  clock_.Advance(base::seconds(1));
  thread.join();
  EXPECT_THAT(restored, base::IsOk());
  EXPECT_EQ(Free(), 2);
}

TEST_F(RestoreUnitsTest, AJobThatIsDeletedBeforeItsFirstPassReleasesItsUnits) {
  const kube::Object planned = Job("planned", 4);
  client_.ScriptList(kube::ObjectList{{PlanOf(planned)}, "7", ""});
  client_.ScriptList(kube::ObjectList{{planned}, "7", ""});
  ASSERT_THAT(RestoreUnits(Deps(), "", {}), base::IsOk());
  EXPECT_EQ(Free(), 2);
  EXPECT_THAT(JobReconciler(Deps()).Reconcile({"ns", "planned"}), base::IsOk());
  EXPECT_EQ(Free(), 5);
}

class UnitsWithNodesTest : public ControllersTest {
 protected:
  void SetUp() override {
    PutNode("stays", {});
    PutNode("leaves",
            kube::Json::array({{{"key", "aws-node-termination-handler/spot-itn"}, {"effect", "NoSchedule"}}}));
    jobs_.Put(std::make_shared<const kube::Object>(Job("a", 4)));
  }
  void PutNode(const std::string& name, const kube::Json& taints) {
    capacity_.PutNode(
        kube::Object(kube::Json{{"kind", "Node"},
                                {"metadata", {{"name", name}, {"labels", {{"l", "v"}}}}},
                                {"spec", {{"taints", taints}}},
                                {"status", {{"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}}));
  }
  void PutPod(const std::string& name, const std::string& node, const std::string& phase,
              const std::string& reason = "") {
    kube::Json conditions = {
        {{"type", "PodScheduled"}, {"status", "True"}, {"lastTransitionTime", "2026-01-01T00:01:30Z"}}};
    if (!reason.empty()) conditions.push_back({{"type", "DisruptionTarget"}, {"status", "True"}, {"reason", reason}});
    kube::Json pod = kube::Json::parse(R"({"kind": "Pod",
        "metadata": {"namespace": "ns", "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"medley.dev/pool": "cpu"},
                     "ownerReferences": [{"kind": "TrainingJob", "name": "a", "uid": "uid-a", "controller": true}]}})");
    pod["metadata"]["name"] = pod["metadata"]["uid"] = name;
    pod["spec"]["nodeName"] = node;
    pod["status"] = {{"phase", phase}, {"conditions", conditions}};
    pods_.Put(std::make_shared<const kube::Object>(pod));
  }
};

TEST_F(UnitsWithNodesTest, CountsNoFinishedPodAndFindsThoseWhoseNodesLeave) {
  PutPod("lives", "stays", "Running");
  PutPod("waits", "", "Pending");
  PutPod("finished", "stays", "Succeeded");
  PutPod("finished-before", "leaves", "Succeeded");
  PutPod("noticed", "leaves", "Running");
  PutPod("alone", "deleted", "Running");
  PutPod("ended-with-it", "deleted", "Failed", "DeletionByTaintManager");
  PutPod("evicted", "stays", "Running", "EvictionByEvictionAPI");
  std::map<std::string, bool> lost;
  for (const UnitLosses::Unit& unit : UnitsWithNodes(Deps(), "cpu")) {
    lost[unit.uid] = unit.lost;
    EXPECT_EQ(unit.start_seconds, 90) << unit.uid;
  }
  const std::map<std::string, bool> expected = {
      {"lives", false}, {"noticed", true}, {"alone", true}, {"ended-with-it", true}, {"evicted", false}};
  EXPECT_EQ(lost, expected);
}

}  // namespace
}  // namespace medley::ops
