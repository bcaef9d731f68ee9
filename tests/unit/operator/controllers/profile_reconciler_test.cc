#include "operator/controllers/profile_reconciler.h"

#include "operator/api/resources.h"
#include "operator/controllers/pool_reconciler.h"
#include "tests/unit/operator/controllers/controllers_test.h"

namespace medley::ops {
namespace {

class ProfileReconcilerTest : public ControllersTest {
 protected:
  ProfileReconcilerTest() {
    client_.on_get = [](const kube::Key& key) { return base::NotFound("no {}", key.ToString()); };
    client_.on_create = [this](const kube::Object& object) {
      if (object.kind() == "Pod") created_.push_back(object);
      return object;
    };
    client_.on_delete = [](const kube::Key&) { return absl::OkStatus(); };
  }
  void Reconcile(ProfileReconciler& reconciler, const kube::ObjectPtr& job) {
    const std::vector<kube::Key> keys = reconciler.KeysOf(*job);
    ASSERT_EQ(keys.size(), 1u) << "the spec of the job is invalid";
    EXPECT_THAT(reconciler.Reconcile(keys.front()), base::IsOk());
  }

  // The cache shows the pod that was created last; it runs.
  std::string ShowPod() {
    kube::Object pod = created_.back();
    pod.mutable_json()["metadata"]["uid"] = "pod-" + std::to_string(created_.size());
    pod.mutable_json()["status"] = {{"phase", "Running"}};
    pods_.Put(std::make_shared<const kube::Object>(pod));
    return pod.key().name;
  }
  kube::ObjectPtr PutJob(const std::string& name, int width) {
    jobs_.Put(std::make_shared<const kube::Object>(Job(name, width)));
    return jobs_.Get({"ns", name});
  }

  std::vector<kube::Object> created_;  // profiler pods
};

TEST_F(ProfileReconcilerTest, ProfilersTakeNoMoreUnitsThanThePoolsLimit) {
  PutPool(2);
  std::vector<kube::ObjectPtr> jobs;
  for (int i = 0; i < 3; ++i) {
    jobs.push_back(std::make_shared<const kube::Object>(Job("job-" + std::to_string(i), 4 + i)));
    jobs_.Put(jobs.back());
  }
  ProfileReconciler reconciler(Deps(), {}, [](const ProfileId&) {});
  for (const auto& job : jobs) Reconcile(reconciler, job);
  ASSERT_EQ(created_.size(), 2u) << "the caches show none of the pods yet";
  const auto waits = board_.OfPool("cpu");
  EXPECT_TRUE(
      std::any_of(waits.begin(), waits.end(), [](const auto& each) { return each.reason == Reason::kNoFreeUnit; }));

  // The first job is deleted before the cache shows its pod.
  jobs_.Erase(jobs[0]->key());
  Reconcile(reconciler, jobs[0]);
  Reconcile(reconciler, jobs[2]);
  EXPECT_EQ(created_.size(), 2u) << "the pod of the deleted job still holds its unit";
  clock_.Advance(base::seconds(31));
  Reconcile(reconciler, jobs[0]);
  Reconcile(reconciler, jobs[2]);
  EXPECT_EQ(created_.size(), 3u);
}

TEST_F(ProfileReconcilerTest, APoolThatCannotBeMeasuredDelaysOthersLittle) {
  PutPool(9);
  const kube::ObjectPtr broken = PutJob("broken", 4);
  const kube::ObjectPtr other = PutJob("other", 5);
  const profiling::Options options{.max_pods = 1};
  std::vector<std::string> deleted;
  client_.on_delete = [&](const kube::Key& key) {
    deleted.push_back(key.name);
    return absl::OkStatus();
  };
  ProfileReconciler reconciler(Deps(), options, [](const ProfileId&) {});
  Reconcile(reconciler, broken);
  ASSERT_EQ(created_.size(), 1u);
  const std::string hung = ShowPod();
  Reconcile(reconciler, broken);
  Reconcile(reconciler, other);
  EXPECT_EQ(created_.size(), 1u) << "one at a time";
  clock_.Advance(options.turn_deadline);
  Reconcile(reconciler, broken);
  EXPECT_EQ(deleted, std::vector{hung}) << "long before the deadline of a profiler that nobody waits for";
  pods_.Erase({"ns", hung});
  clock_.Advance(options.longest_retry);
  Reconcile(reconciler, broken);
  EXPECT_EQ(created_.size(), 1u) << "the profile that has not failed comes first";
  Reconcile(reconciler, other);
  ASSERT_EQ(created_.size(), 2u);
  EXPECT_EQ(created_.back().label(kJobNameLabel), "other");
}

TEST_F(ProfileReconcilerTest, NothingIsReportedOfAPoolBeforeItsProfilesWereLookedAt) {
  PutPool(0);  // the profile waits for a unit
  const kube::ObjectPtr job = PutJob("job", 4);
  ProfileReconciler reconciler(Deps(), {}, [](const ProfileId&) {});
  PoolReconciler pools(Deps());
  kube::Json written;
  client_.on_patch = [&](const kube::Key&, const kube::Json& patch) {
    written = patch;
    return kube::Object();
  };
  const auto profiled = [&] {
    EXPECT_THAT(pools.Reconcile({"", "cpu"}), base::IsOk());
    const Conditions conditions = Conditions::FromJson(written["status"]["conditions"]);
    const Condition* condition = conditions.Find(kProfiledCondition);
    return condition == nullptr ? std::string() : condition->reason;
  };
  reconciler.ExpectAll();
  EXPECT_EQ(profiled(), "") << "what the last leader wrote stays";
  Reconcile(reconciler, job);
  EXPECT_EQ(profiled(), "NoFreeUnit");
}

}  // namespace
}  // namespace medley::ops
