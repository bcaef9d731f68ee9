// Everything that has a meaning for the operator and that a user can write: labels, annotations, finalizers and owner
// references, on pods of others, on members, on jobs, in templates and on records. None of it changes what pools count,
// whose pods a job sees, or another job's plan.
#include <gmock/gmock.h>

#include "operator/api/names.h"
#include "operator/builders/objects.h"
#include "operator/builders/pod_signature.h"
#include "operator/builders/pods.h"
#include "operator/builders/worker_env.h"
#include "operator/capacity/trim.h"
#include "operator/controllers/job_units.h"
#include "operator/controllers/job_world.h"
#include "operator/records/record_keys.h"
#include "tests/unit/operator/controllers/controllers_test.h"

namespace medley::ops {
namespace {

using kube::Json;
using testing::ElementsAre;
using testing::Pair;

constexpr const char* kReservedLabels[] = {kJobNameLabel,    kRoleLabel,    kPoolLabel,     kStageLabel,
                                           kGenerationLabel, kProfileLabel, kManagedByLabel};
constexpr const char* kReservedAnnotations[] = {kLeaderTermAnnotation, kCoordinatorTermAnnotation, kTemplateAnnotation,
                                                kTokenAnnotation,      kPoolVersionAnnotation,     kSignatureAnnotation,
                                                kNeedsAnnotation,      kUnsignedAnnotation};

// What a user would write there to do the most harm.
std::string ValueOf(const std::string& name) {
  if (name == kJobNameLabel) return "victim";
  if (name == kRoleLabel) return "trainer";
  if (name == kPoolLabel) return "cpu";
  if (name == kManagedByLabel) return "medley-operator";
  return "1";
}

Json Owner(const char* kind, const char* name, const char* uid, bool controller, const char* api = "medley.dev/v1") {
  return Json::array({{{"apiVersion", api}, {"kind", kind}, {"name", name}, {"uid", uid}, {"controller", controller}}});
}

struct Attack {
  std::string what;
  Json metadata;  // merged into that of the object
};

// Each name alone, and all together.
std::vector<Attack> Attacks() {
  std::vector<Attack> attacks;
  Json all = Json::object();
  const auto add = [&](const std::string& field, const std::string& name) {
    attacks.push_back({field + " " + name, {{field, {{name, ValueOf(name)}}}}});
    all[field][name] = ValueOf(name);
  };
  for (const char* name : kReservedLabels) add("labels", name);
  for (const char* name : kReservedAnnotations) add("annotations", name);
  attacks.push_back({"finalizer", {{"finalizers", {kFinalizer}}}});
  all["finalizers"] = {kFinalizer};
  attacks.push_back({"everything", all});
  const std::pair<const char*, Json> owners[] = {
      {"a job that does not exist", Owner("TrainingJob", "ghost", "uid-ghost", true)},
      {"an earlier job of the name", Owner("TrainingJob", "victim", "uid-before", true)},
      {"the UID of a job under another name", Owner("TrainingJob", "other", "uid-victim", true)},
      {"no controller", Owner("TrainingJob", "victim", "uid-victim", false)},
      {"another kind with the UID", Owner("ReplicaSet", "victim", "uid-victim", true, "apps/v1")},
      {"another group with the UID", Owner("TrainingJob", "victim", "uid-victim", true, "kubeflow.org/v1")},
  };
  for (const auto& [what, owner] : owners) {
    attacks.push_back({std::string("owner: ") + what, {{"ownerReferences", owner}}});
    Json with_labels = all;
    with_labels["ownerReferences"] = owner;
    attacks.push_back({std::string("everything, and the owner: ") + what, with_labels});
  }
  return attacks;
}

constexpr base::WallTime kSigned{base::seconds(1767225600)};  // 2026-01-01T00:00:00Z

class ReservedNamesTest : public ControllersTest {
 protected:
  void SetUp() override {
    PutPool(5);
    pool_ = std::make_shared<const ResourcePool>(*ResourcePool::FromObject(*pools_.Get({"", "cpu"})));
    capacity_.ExpectJobs("");
    victim_ = std::make_shared<const kube::Object>(Job("victim", 4));
    jobs_.Put(victim_);
    capacity_.PutJob(victim_->key(), victim_->uid());
    std::vector<PlannedUnit> units;
    for (const char* name : {"victim-0-cpu-0", "victim-0-cpu-1"}) {
      const kube::Object pod = Member(name);
      units.push_back({pod.key(), pool_, std::make_shared<const PodDemand>(DemandOf(pod))});
      Put(pod);
    }
    ASSERT_THAT(capacity_.Reserve({victim_->key(), victim_->uid()}, units), base::IsOk());
  }
  kube::Object Member(const std::string& name) const {
    const auto job = TrainingJob::FromObject(*victim_);
    kube::Object pod = MemberPod(*job, {name, Role::kTrainer, "cpu", 0, 0}, *pool_, {}, "", 1);
    pod.mutable_json()["metadata"]["uid"] = "uid-" + name;
    pod.mutable_json()["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z";
    pod.mutable_json()["spec"]["nodeName"] = "n";
    pod.mutable_json()["status"] = {{"phase", "Running"}};
    SignPod(keys_, kSigned, pod);
    return pod;
  }
  // A user's own pod with `metadata`, which has a copy of a member's containers.
  kube::Object Foreign(const std::string& ns, const Json& metadata) const {
    kube::Object pod = Member("victim-0-cpu-0");
    Json& json = pod.mutable_json();
    json["metadata"] = {{"name", "foreign"}, {"namespace", ns}, {"uid", "uid-foreign"}};
    kube::MergePatch(json["metadata"], metadata);
    return pod;
  }
  // As the operator's informers do.
  void Put(kube::Object pod) {
    TrimPod(pod, &signed_pods_);
    capacity_.PutPod(pod);
    pods_.Put(std::make_shared<const kube::Object>(std::move(pod)));
  }
  void Erase(const kube::Key& pod) {
    if (const kube::ObjectPtr known = pods_.Get(pod)) signed_pods_.Erased(pod, known->uid());
    capacity_.ErasePod(pod);
    pods_.Erase(pod);
  }
  void ExpectNothingChanged() {
    ExpectNothingCounts();
    const lifecycle::World world = ReadWorld(Deps(), victim_, {}, true);
    EXPECT_THAT(world.pods, ElementsAre(Pair("victim-0-cpu-0", testing::_), Pair("victim-0-cpu-1", testing::_)));
  }
  // For pods beside the two members.
  void ExpectNothingCounts() {
    PodDemand unit;
    unit.amounts.requests = {{"cpu", 1000}};
    const PoolUnits units = capacity_.UnitsOf(*pool_, unit);
    EXPECT_EQ(units.used, 2);
    EXPECT_EQ(units.free, 3);
    const JobUnits others = capacity_.UnitsFor(*pool_, unit, {"ns", "other"});
    EXPECT_EQ(others.held_by_others, 2);
    EXPECT_THAT(others.others, ElementsAre(victim_->key()));
    EXPECT_EQ(capacity_.UnitsFor(*pool_, unit, victim_->key()).units, 5);
    EXPECT_THAT(capacity_.NamespacesOn("cpu"), ElementsAre("ns"));
    EXPECT_THAT(capacity_.JobsOn("n"), ElementsAre(victim_->key()));
    EXPECT_EQ(PlacedPods(Deps(), "cpu").size(), 2u) << "would end an outage of the pool";
    EXPECT_EQ(ReadWorld(Deps(), victim_, {}, true).paid_pods.size(), 2u);
  }

  std::shared_ptr<const ResourcePool> pool_;
  kube::ObjectPtr victim_;
};

TEST_F(ReservedNamesTest, APodOfAnotherUserIsNobodysMember) {
  ExpectNothingChanged();
  for (const Attack& attack : Attacks()) {
    for (const char* ns : {"ns", "evil"}) {
      for (const bool waits : {false, true}) {
        SCOPED_TRACE(attack.what + " in " + ns + (waits ? ", not scheduled" : ""));
        kube::Object pod = Foreign(ns, attack.metadata);
        if (waits) pod.mutable_json()["spec"].erase("nodeName");
        if (waits) pod.mutable_json()["status"]["phase"] = "Pending";
        Put(pod);
        ExpectNothingChanged();
        Erase(pod.key());
      }
    }
  }
  ExpectNothingChanged();
}

// A pod of a user that names a job of the namespace as its owner, with whatever the user can copy from its pods. The
// operator, which sees it, deletes it; until then it holds no unit, costs the job nothing, and ends no outage.
TEST_F(ReservedNamesTest, APodThatNamesAKnownJobAsItsOwnerHoldsNoUnit) {
  const Json owner = {{"name", "victim-0-cpu-7"},
                      {"creationTimestamp", "2026-01-01T00:00:00Z"},
                      {"ownerReferences", Owner("TrainingJob", "victim", "uid-victim", true)}};
  kube::Object other_job = Member("victim-0-cpu-7");
  other_job.mutable_json()["metadata"]["ownerReferences"] = Owner("TrainingJob", "other", "uid-other", true);
  SignPod(keys_, kSigned, other_job);
  kube::Object other_pool = Member("victim-0-cpu-7");
  SetVariable("MEDLEY_POOL", "free", other_pool.mutable_json()["spec"]["containers"][0]);
  SignPod(keys_, kSigned, other_pool);
  const std::pair<const char*, std::string> signatures[] = {
      {"none", ""},
      {"one that a user makes up", std::string(64, 'a')},
      {"of another pod of the job", ClaimsOf(Member("victim-0-cpu-0")).signature},
      {"of a pod of the name in another job", ClaimsOf(other_job).signature},
      {"of a pod of the name in another pool", ClaimsOf(other_pool).signature},
      {"with another key", [&] {
         kube::Object pod = Member("victim-0-cpu-7");
         SignPod(RecordKeys({std::string(32, 'x')}), kSigned, pod);
         return ClaimsOf(pod).signature;
       }()}};
  for (const auto& [what, signature] : signatures) {
    SCOPED_TRACE(what);
    kube::Object pod = Foreign("ns", owner);
    SetVariable("MEDLEY_POD_SIGNATURE", signature, pod.mutable_json()["spec"]["containers"][0]);
    pod.SetAnnotation(kUnsignedAnnotation, "");
    Put(pod);
    ExpectNothingCounts();
    EXPECT_TRUE(ReadWorld(Deps(), victim_, {}, true).pods.contains("victim-0-cpu-7")) << "so that it is deleted";
    Erase(pod.key());
    ExpectNothingChanged();
  }
  // The same pod, made by the operator, counts: the test can fail.
  Put(Member("victim-0-cpu-7"));
  PodDemand unit;
  unit.amounts.requests = {{"cpu", 1000}};
  EXPECT_EQ(capacity_.UnitsOf(*pool_, unit).used, 3);
  EXPECT_EQ(ReadWorld(Deps(), victim_, {}, true).paid_pods.size(), 3u);
}

// The operator's pod is deleted, and another user makes one of the same name from a copy of it, with whatever else may
// help: at once or hours later, also where no operator ran in between.
TEST_F(ReservedNamesTest, ACopyUnderTheNameOfADeletedPodHoldsNoUnit) {
  const kube::Object original = Member("victim-0-cpu-7");
  for (const char* created : {"2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z", "2026-01-01T09:00:00Z"}) {
    for (const char* what : {"seen", "seen, with a finalizer", "terminating", "not scheduled"}) {
      SCOPED_TRACE(std::string(created) + " " + what);
      Put(original);
      Erase(original.key());
      kube::Object copy = original;
      Json& json = copy.mutable_json();
      json["metadata"]["uid"] = "uid-copy";
      json["metadata"]["creationTimestamp"] = created;
      copy.SetAnnotation(kUnsignedAnnotation, "");
      if (std::string(what).ends_with("finalizer")) json["metadata"]["finalizers"] = {"evil.example/keep"};
      if (std::string(what) == "terminating") json["metadata"]["deletionTimestamp"] = created;
      if (std::string(what) == "not scheduled") json["spec"].erase("nodeName");
      Put(copy);
      ExpectNothingChanged();
      const lifecycle::World world = ReadWorld(Deps(), victim_, {}, true);
      ASSERT_EQ(world.copies.size(), 1u) << "so that it is deleted";
      EXPECT_EQ(world.copies.front()->uid(), "uid-copy");
      Erase(copy.key());
    }
  }
}

// Under the name of a planned member it holds the unit of the plan and no other; the job does not take it for a member.
TEST_F(ReservedNamesTest, ACopyOfAPlannedMemberIsNotAMember) {
  kube::Object copy = Member("victim-0-cpu-0");
  copy.mutable_json()["metadata"]["uid"] = "uid-copy";
  copy.mutable_json()["metadata"]["creationTimestamp"] = "2026-01-01T00:00:30Z";
  Put(copy);
  PodDemand unit;
  unit.amounts.requests = {{"cpu", 1000}};
  EXPECT_EQ(capacity_.UnitsOf(*pool_, unit).used, 2);
  lifecycle::Memory memory;
  memory.stored_plan.record.emplace();
  memory.stored_plan.record->slots = {{"victim-0-cpu-0", Role::kTrainer, "cpu", 0, 0}};
  const lifecycle::World world = ReadWorld(Deps(), victim_, memory, false);
  EXPECT_FALSE(world.pods.contains("victim-0-cpu-0"));
  EXPECT_EQ(world.paid_pods.size(), 1u) << "the job pays for the other member only";
  ASSERT_EQ(world.copies.size(), 1u);
  EXPECT_EQ(PlacedPods(Deps(), "cpu").size(), 1u);
}

// Pods of a version that did not sign them: the plan has reserved their names.
TEST_F(ReservedNamesTest, APlannedMemberWithoutASignatureCounts) {
  kube::Object pod = Member("victim-0-cpu-0");
  SetVariable("MEDLEY_POD_SIGNATURE", "", pod.mutable_json()["spec"]["containers"][0]);
  Put(pod);
  PodDemand unit;
  unit.amounts.requests = {{"cpu", 1000}};
  EXPECT_EQ(capacity_.UnitsOf(*pool_, unit).used, 2);
  lifecycle::Memory memory;
  memory.stored_plan.record.emplace();
  memory.stored_plan.record->slots = {{"victim-0-cpu-0", Role::kTrainer, "cpu", 0, 0}};
  EXPECT_EQ(ReadWorld(Deps(), victim_, memory, false).paid_pods.size(), 2u);
}

TEST_F(ReservedNamesTest, TheOwnerOfAnotherNamespaceDoesNotCount) {
  const kube::Object pod = Foreign("evil", {{"ownerReferences", Owner("TrainingJob", "victim", "uid-victim", true)}});
  Put(pod);
  ExpectNothingChanged();
}

// Whatever is taken from it or added to it.
TEST_F(ReservedNamesTest, AMemberStaysAMember) {
  std::vector<Attack> attacks = Attacks();
  std::erase_if(attacks, [](const Attack& attack) { return attack.metadata.contains("ownerReferences"); });
  attacks.push_back({"no labels", {{"labels", nullptr}}});
  attacks.push_back({"no annotations", {{"annotations", nullptr}}});
  for (const char* name : kReservedLabels)
    attacks.push_back({std::string("without ") + name, {{"labels", {{name, nullptr}}}}});
  attacks.push_back({"another pool", {{"labels", {{kPoolLabel, "free"}}}}});
  attacks.push_back({"another role", {{"labels", {{kRoleLabel, "coordinator"}}}}});
  attacks.push_back({"another job", {{"labels", {{kJobNameLabel, "other"}}}}});
  for (const Attack& attack : attacks) {
    SCOPED_TRACE(attack.what);
    kube::Object pod = Member("victim-0-cpu-0");
    kube::MergePatch(pod.mutable_json()["metadata"], attack.metadata);
    Put(pod);
    ExpectNothingChanged();
  }
}

// The plan counts it as long as it has the name, also where nobody owns it any more.
TEST_F(ReservedNamesTest, AMemberWithoutItsOwnerStillHoldsItsUnit) {
  for (const Json& owners : {Json(), Json(Owner("ReplicaSet", "web", "uid-web", true, "apps/v1"))}) {
    kube::Object pod = Member("victim-0-cpu-0");
    pod.mutable_json()["metadata"]["ownerReferences"] = owners;
    Put(pod);
    PodDemand unit;
    unit.amounts.requests = {{"cpu", 1000}};
    EXPECT_EQ(capacity_.UnitsOf(*pool_, unit).used, 2);
    EXPECT_THAT(capacity_.UnitsFor(*pool_, unit, {"ns", "other"}).others, ElementsAre(victim_->key()));
  }
}

TEST_F(ReservedNamesTest, ATemplateSetsNoneOfThem) {
  Json metadata = Json::object();
  for (const char* name : kReservedLabels) metadata["labels"][name] = "evil";
  for (const char* name : kReservedAnnotations) metadata["annotations"][name] = "evil";
  kube::Object object = Job("other", 4);
  object.mutable_json()["spec"]["template"]["metadata"] = metadata;
  const auto job = TrainingJob::FromObject(object);
  ASSERT_THAT(job, base::IsOk());
  for (const kube::Object& pod : {MemberPod(*job, {"other-0-cpu-0", Role::kTrainer, "cpu", 0, 0}, *pool_, {}, "", 1),
                                  CoordinatorPod(*job, {}), ProfilerPod(*job, *pool_, {})}) {
    for (const char* name : kReservedLabels) EXPECT_NE(pod.label(name), "evil") << name;
    for (const char* name : kReservedAnnotations) EXPECT_NE(pod.annotation(name), "evil") << name;
    EXPECT_TRUE(pod.At("/metadata/finalizers").is_null());
    EXPECT_EQ(pod.controller()->uid, object.uid());
  }
}

// On the job itself they say nothing: the operator reads its name, namespace and UID.
TEST_F(ReservedNamesTest, AJobWithReservedNamesIsAnOrdinaryJob) {
  for (const Attack& attack : Attacks()) {
    SCOPED_TRACE(attack.what);
    kube::Object job = *victim_;
    kube::MergePatch(job.mutable_json()["metadata"], attack.metadata);
    jobs_.Put(std::make_shared<const kube::Object>(job));
    ExpectNothingChanged();
    EXPECT_TRUE(ReadJobInput(Deps(), std::make_shared<const kube::Object>(job)).problems.empty());
  }
}

// Without the signature a ConfigMap that looks like a record is not one.
TEST_F(ReservedNamesTest, AConfigMapWithReservedNamesIsNotARecord) {
  const RecordKeys keys;
  for (const Attack& attack : Attacks()) {
    SCOPED_TRACE(attack.what);
    kube::Object map = ProfileConfigMap("ns", "00ff", "cpu", "{}");
    kube::MergePatch(map.mutable_json()["metadata"], attack.metadata);
    EXPECT_FALSE(keys.Check(RecordKind::kProfile, "", map).ok());
    EXPECT_FALSE(keys.Check(RecordKind::kPlan, "uid-victim", map).ok());
  }
}

}  // namespace
}  // namespace medley::ops
