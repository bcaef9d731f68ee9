// Tests an item of section E of docs/design/kube-client.md: reconciling a deleted object does nothing.
#include "common/base/testing/fake_clock.h"
#include "common/base/testing/status_matchers.h"
#include "kube/client/testing/fake_client.h"
#include "operator/controllers/job_reconciler.h"
#include "operator/controllers/pool_reconciler.h"
#include "operator/controllers/profile_reconciler.h"

namespace medley::ops {
namespace {

TEST(ReconcilerTest, E2_ADeletedObjectIsSuccessAndWritesNothing) {
  base::FakeClock clock;
  kube::FakeClient client;  // without hooks: every call fails
  metrics::Registry registry;
  OperatorMetrics metrics(registry);
  kube::Store empty;
  ASSERT_THAT(empty.AddIndex(kProfileIndex, ProfileOfPod), base::IsOk());
  SchedulerClient scheduler({.address = "127.0.0.1:1"}, clock);
  CoordinatorLinks links(1, [](const kube::Key&, bool) {});
  SlowCalls calls({.planner_threads = 1, .coordinator_threads = 1, .suspension_threads = 1, .log_threads = 1},
                  [](const kube::Key&) {});
  ObservationSender observations(
      {},
      [](const model::JobObservation&, const std::string&, std::stop_token) { return base::Unavailable("no service"); },
      [](const absl::StatusOr<model::Prediction>&) {});
  profiling::Board profiles;
  EventRecorder events(client, clock, {});
  Expectations expectations(clock);
  const JobStores stores{empty, empty, empty, empty, empty, empty, empty, empty};
  CapacityView capacity;
  SignedPods signed_pods{RecordKeys(), clock};
  WaitingLine line(clock, [](const kube::Key&, base::nanoseconds) {});
  PoolOutages outages;
  const JobDeps deps{client, clock, stores,       capacity, signed_pods, line,         outages, scheduler,
                     links,  calls, observations, profiles, events,      expectations, metrics, {}};
  const auto job = JobReconciler(deps).Reconcile({"ns", "absent"});
  ASSERT_THAT(job, base::IsOk());
  EXPECT_FALSE(job->requeue_after.has_value());
  const auto pool = PoolReconciler(deps).Reconcile({"", "absent"});
  ASSERT_THAT(pool, base::IsOk());
  EXPECT_FALSE(pool->requeue_after.has_value());
  int changes = 0;
  ProfileReconciler reconciler(deps, {}, [&](const ProfileId&) { ++changes; });
  for (const char* name : {"00ff.absent", "no-profile"}) {
    const auto profile = reconciler.Reconcile({"ns", name});
    ASSERT_THAT(profile, base::IsOk());
    EXPECT_FALSE(profile->requeue_after.has_value());
  }
  EXPECT_EQ(changes, 0);
}

}  // namespace
}  // namespace medley::ops
