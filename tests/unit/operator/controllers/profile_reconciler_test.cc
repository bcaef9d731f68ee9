#include "operator/controllers/profile_reconciler.h"

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
  EXPECT_TRUE(std::any_of(waits.begin(), waits.end(), [](const auto& each) { return each.reason == "NoFreeUnit"; }));

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

}  // namespace
}  // namespace medley::ops
