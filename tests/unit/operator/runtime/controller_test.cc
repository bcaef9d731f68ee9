// Tests the items of section E of docs/design/kube-client.md.
#include "operator/runtime/controller.h"

#include <algorithm>
#include <map>
#include <type_traits>

#include "common/base/testing/fake_clock.h"
#include "common/base/testing/status_matchers.h"
#include "kube/client/testing/fake_client.h"

namespace medley::ops {
namespace {

using base::seconds;
using kube::Key;
using kube::WatchEvent;

const kube::Resource kJobs{"medley.dev", "v1alpha1", "trainingjobs", "TrainingJob", true};

kube::Object Job(const std::string& name, const std::string& uid, const std::string& version, int generation) {
  kube::Object job(kJobs, {"ns", name});
  job.mutable_json()["metadata"].update({{"uid", uid}, {"resourceVersion", version}, {"generation", generation}});
  return job;
}

kube::Object PodOf(const kube::Object& owner, const std::string& version) {
  kube::Object pod(kube::resources::Pods(), {"ns", "pod"});
  pod.mutable_json()["metadata"].update({{"uid", "pod-uid"}, {"resourceVersion", version}});
  EXPECT_THAT(pod.SetController(owner), base::IsOk());
  return pod;
}

class ScriptedReconciler : public Reconciler {
 public:
  absl::StatusOr<Result> Reconcile(const Key& key) override {
    std::function<absl::StatusOr<Result>(int)> run;
    int call = 0;
    {
      base::MutexLock lock(mutex_);
      call = ++calls_[key];
      run = script;
      changed_.NotifyAll();
    }
    return run ? run(call) : Result{};
  }
  bool WaitForCalls(const Key& key, int n) {
    base::MutexLock lock(mutex_);
    return changed_.WaitFor(mutex_, {}, seconds(60), [&] { return calls_[key] >= n; });
  }
  int Calls(const Key& key) {
    base::MutexLock lock(mutex_);
    return calls_[key];
  }
  std::function<absl::StatusOr<Result>(int call)> script;  // set before Start

 private:
  base::Mutex mutex_;
  base::CondVar changed_;
  std::map<Key, int> calls_ ABSL_GUARDED_BY(mutex_);
};

class Counters : public ControllerMetrics {
 public:
  void OnReconcile(Outcome outcome, base::nanoseconds) override {
    base::MutexLock lock(mutex_);
    ++counts_[outcome];
    changed_.NotifyAll();
  }
  void OnException() override { ++exceptions; }
  bool WaitFor(Outcome outcome, int n) {
    base::MutexLock lock(mutex_);
    return changed_.WaitFor(mutex_, {}, seconds(60), [&] { return counts_[outcome] >= n; });
  }
  std::atomic<int> exceptions = 0;

 private:
  base::Mutex mutex_;
  base::CondVar changed_;
  std::map<Outcome, int> counts_ ABSL_GUARDED_BY(mutex_);
};

class ControllerTest : public testing::Test {
 protected:
  using Outcome = ControllerMetrics::Outcome;
  const Key key_{"ns", "j"};

  ~ControllerTest() override {
    if (controller_) controller_->Stop();
    client_.Close();
    for (kube::Informer* informer : {jobs_.get(), pods_.get()}) {
      if (informer != nullptr) informer->Stop();
    }
  }
  Controller& Make() {
    Controller::Options options;
    options.name = "test";
    options.limiter = std::make_unique<kube::ExponentialRateLimiter>();
    options.metrics = &metrics_;
    controller_ = std::make_unique<Controller>(std::move(options), reconciler_, clock_);
    return *controller_;
  }
  std::unique_ptr<kube::Informer> MakeInformer(const kube::Resource& resource) {
    kube::Informer::Options options;
    options.reflector.resource = resource;
    options.reflector.watch_list = false;
    return std::make_unique<kube::Informer>(client_, clock_, std::move(options));
  }
  // Advances the clock until the key has been reconciled `n` times.
  void AdvanceUntil(int n) {
    base::SystemClock real;
    const auto deadline = real.Steady() + seconds(60);
    while (reconciler_.Calls(key_) < n && real.Steady() < deadline) {
      clock_.Advance(base::milliseconds(5));
      std::this_thread::yield();
    }
    ASSERT_GE(reconciler_.Calls(key_), n);
  }

  base::FakeClock clock_;
  kube::FakeClient client_;
  ScriptedReconciler reconciler_;
  Counters metrics_;
  std::unique_ptr<kube::Informer> jobs_;
  std::unique_ptr<kube::Informer> pods_;
  std::unique_ptr<Controller> controller_;
};

TEST_F(ControllerTest, E1_AnErrorIsTriedAgainAndItsResultIgnored) {
  reconciler_.script = [](int call) -> absl::StatusOr<Result> {
    if (call < 3) return base::Unavailable("not yet");
    return Result{};
  };
  Controller& controller = Make();
  ASSERT_THAT(controller.Start(), base::IsOk());
  controller.Enqueue(key_);
  AdvanceUntil(3);
  EXPECT_TRUE(metrics_.WaitFor(Outcome::kError, 2));
  EXPECT_TRUE(metrics_.WaitFor(Outcome::kSuccess, 1));
}

TEST_F(ControllerTest, E1_ATerminalErrorIsCountedNotRequeued) {
  reconciler_.script = [](int) -> absl::StatusOr<Result> { return Terminal(base::InvalidArgument("spec.x")); };
  Controller& controller = Make();
  ASSERT_THAT(controller.Start(), base::IsOk());
  controller.Enqueue(key_);
  ASSERT_TRUE(metrics_.WaitFor(Outcome::kTerminalError, 1));
  clock_.Advance(seconds(2000));
  controller.Enqueue({"ns", "other"});
  ASSERT_TRUE(metrics_.WaitFor(Outcome::kTerminalError, 2));
  EXPECT_EQ(reconciler_.Calls(key_), 1);
}

TEST_F(ControllerTest, E1_RequeueAfterWaits) {
  reconciler_.script = [](int call) -> absl::StatusOr<Result> {
    return call == 1 ? Result{.requeue_after = seconds(60)} : Result{};
  };
  Controller& controller = Make();
  ASSERT_THAT(controller.Start(), base::IsOk());
  controller.Enqueue(key_);
  ASSERT_TRUE(metrics_.WaitFor(Outcome::kRequeueAfter, 1));
  clock_.Advance(seconds(59));
  EXPECT_EQ(reconciler_.Calls(key_), 1);
  clock_.Advance(seconds(1));
  EXPECT_TRUE(reconciler_.WaitForCalls(key_, 2));
}

TEST_F(ControllerTest, E1_ExceptionsAreCaughtCountedAndTreatedAsErrors) {
  reconciler_.script = [](int call) -> absl::StatusOr<Result> {
    if (call == 1) throw std::runtime_error("boom");
    if (call == 2) throw 7;
    return Result{};
  };
  Controller& controller = Make();
  ASSERT_THAT(controller.Start(), base::IsOk());
  controller.Enqueue(key_);
  AdvanceUntil(3);
  EXPECT_EQ(metrics_.exceptions, 2);
}

// A rate limiter that records its calls.
class SpyLimiter : public kube::RateLimiter {
 public:
  SpyLimiter(std::atomic<int>& failures, std::atomic<int>& forgotten) : failures_(failures), forgotten_(forgotten) {}
  base::nanoseconds When(const Key& key) override {
    ++failures_;
    return limiter_.When(key);
  }
  void Forget(const Key& key) override {
    ++forgotten_;
    limiter_.Forget(key);
  }
  int Requeues(const Key& key) const override { return limiter_.Requeues(key); }

 private:
  std::atomic<int>& failures_;
  std::atomic<int>& forgotten_;
  kube::ExponentialRateLimiter limiter_;
};

TEST_F(ControllerTest, E1_OnlyErrorsAreRateLimitedSuccessAndRequeueAfterForget) {
  std::atomic<int> failures = 0, forgotten = 0;
  reconciler_.script = [](int call) -> absl::StatusOr<Result> {
    if (call <= 2) return base::Unavailable("not yet");
    return call == 3 ? Result{.requeue_after = seconds(60)} : Result{};
  };
  Controller::Options options;
  options.name = "test";
  options.limiter = std::make_unique<SpyLimiter>(failures, forgotten);
  options.metrics = &metrics_;
  controller_ = std::make_unique<Controller>(std::move(options), reconciler_, clock_);
  ASSERT_THAT(controller_->Start(), base::IsOk());
  controller_->Enqueue(key_);
  AdvanceUntil(3);
  ASSERT_TRUE(metrics_.WaitFor(Outcome::kRequeueAfter, 1));
  EXPECT_EQ(failures, 2);
  EXPECT_EQ(forgotten, 1);
  clock_.Advance(seconds(60));
  ASSERT_TRUE(metrics_.WaitFor(Outcome::kSuccess, 1));
  EXPECT_EQ(failures, 2);
  EXPECT_EQ(forgotten, 2);
}

TEST_F(ControllerTest, E1_OneWorkerByDefaultAndAKeyIsNeverOnTwo) {
  EXPECT_EQ(Controller::Options().workers, 1);
  base::Mutex mutex;
  base::CondVar changed;
  bool open = false;
  int running = 0, most = 0;
  reconciler_.script = [&](int) -> absl::StatusOr<Result> {
    base::MutexLock lock(mutex);
    most = std::max(most, ++running);
    changed.NotifyAll();
    changed.WaitFor(mutex, {}, seconds(60), [&] { return open; });
    --running;
    return Result{};
  };
  Controller::Options options;
  options.name = "wide";
  options.workers = 4;
  controller_ = std::make_unique<Controller>(std::move(options), reconciler_, clock_);
  ASSERT_THAT(controller_->Start(), base::IsOk());
  controller_->Enqueue(key_);
  ASSERT_TRUE(reconciler_.WaitForCalls(key_, 1));
  controller_->Enqueue(key_);  // while it is being reconciled: it is reconciled once more afterwards
  controller_->Enqueue(key_);
  const Key other{"ns", "other"};
  controller_->Enqueue(other);
  ASSERT_TRUE(reconciler_.WaitForCalls(other, 1));  // a different key is reconciled at the same time
  EXPECT_EQ(reconciler_.Calls(key_), 1);
  {
    base::MutexLock lock(mutex);
    EXPECT_TRUE(changed.WaitFor(mutex, {}, seconds(60), [&] { return running == 2; }));
    open = true;
    changed.NotifyAll();
  }
  ASSERT_TRUE(reconciler_.WaitForCalls(key_, 2));
  controller_->Stop();
  EXPECT_EQ(reconciler_.Calls(key_), 2);
  EXPECT_EQ(most, 2);
}

TEST_F(ControllerTest, E2_OwnerMappingAndSelf) {
  const kube::Object job = Job("j", "u1", "1", 1);
  client_.ScriptList(kube::ObjectList{{job}, "10", ""});
  jobs_ = MakeInformer(kJobs);
  jobs_->Start();
  ASSERT_THAT(jobs_->WaitForSync(seconds(60), {}), base::IsOk());
  const KeyMapper map = MapController(*jobs_);
  EXPECT_EQ(map(PodOf(job, "2")), std::vector<Key>{key_});
  EXPECT_TRUE(map(PodOf(Job("j", "older", "1", 1), "2")).empty());  // the owner has another UID
  EXPECT_EQ(map(PodOf(Job("unseen", "u9", "1", 1), "2")), (std::vector<Key>{{"ns", "unseen"}}));
  kube::Object foreign = Job("j", "u1", "1", 1);
  foreign.mutable_json()["apiVersion"] = "other.dev/v1";
  EXPECT_TRUE(map(PodOf(foreign, "2")).empty());
  EXPECT_TRUE(map(kube::Object(kube::resources::Pods(), {"ns", "p"})).empty());
  EXPECT_EQ(MapSelf()(job), std::vector<Key>{key_});
}

TEST_F(ControllerTest, E2_AnUpdateEnqueuesOldAndNewOwnerAndADeletionItsOwner) {
  client_.ScriptList(kube::ObjectList{{}, "10", ""});
  jobs_ = MakeInformer(kJobs);
  jobs_->Start();
  ASSERT_THAT(jobs_->WaitForSync(seconds(60), {}), base::IsOk());
  ASSERT_TRUE(client_.WaitForWatches(1));
  const kube::Object a = Job("a", "ua", "1", 1);
  const kube::Object b = Job("b", "ub", "1", 1);
  client_.ScriptList(kube::ObjectList{{PodOf(a, "11")}, "11", ""});
  client_.ScriptWatch(
      {.events = {{WatchEvent::Type::kModified, PodOf(b, "12")}, {WatchEvent::Type::kDeleted, PodOf(b, "13")}},
       .hold = true});
  pods_ = MakeInformer(kube::resources::Pods());
  Controller& controller = Make();
  ASSERT_THAT(controller.AddSource(*pods_, MapController(*jobs_)), base::IsOk());
  pods_->Start();
  ASSERT_THAT(controller.Start(), base::IsOk());
  EXPECT_TRUE(reconciler_.WaitForCalls({"ns", "a"}, 1));
  EXPECT_TRUE(reconciler_.WaitForCalls({"ns", "b"}, 1));
}

TEST_F(ControllerTest, E2_ATombstoneEnqueuesTheOwnerThatWasLastSeen) {
  client_.ScriptList(kube::ObjectList{{}, "10", ""});
  jobs_ = MakeInformer(kJobs);
  jobs_->Start();
  ASSERT_THAT(jobs_->WaitForSync(seconds(60), {}), base::IsOk());
  ASSERT_TRUE(client_.WaitForWatches(1));
  client_.ScriptList(kube::ObjectList{{PodOf(Job("a", "ua", "1", 1), "11")}, "11", ""});
  kube::Object expired;
  expired.mutable_json() = {{"kind", "Status"}, {"code", 410}, {"reason", "Expired"}};
  client_.ScriptWatch({.events = {{WatchEvent::Type::kError, expired}}});
  client_.ScriptList(kube::ObjectList{{}, "20", ""});  // it was deleted while no watch was open
  pods_ = MakeInformer(kube::resources::Pods());
  Controller& controller = Make();
  ASSERT_THAT(controller.AddSource(*pods_, MapController(*jobs_)), base::IsOk());
  pods_->Start();
  ASSERT_THAT(controller.Start(), base::IsOk());
  ASSERT_TRUE(reconciler_.WaitForCalls({"ns", "a"}, 1));
  const base::SystemClock real;
  const auto deadline = real.Steady() + seconds(60);
  while (reconciler_.Calls({"ns", "a"}) < 2 && real.Steady() < deadline) {
    clock_.Advance(base::milliseconds(100));  // the reflector's pause before it lists again
    std::this_thread::yield();
  }
  EXPECT_EQ(reconciler_.Calls({"ns", "a"}), 2);
}

TEST_F(ControllerTest, E3_CachedObjectsCannotBeChanged) {
  static_assert(std::is_same_v<kube::ObjectPtr, std::shared_ptr<const kube::Object>>);
  static_assert(std::is_same_v<KeyMapper, std::function<std::vector<Key>(const kube::Object&)>>);
}

TEST_F(ControllerTest, E3_GenerationFilterPassesSpecChangesOnly) {
  const UpdateFilter filter = GenerationChanged();
  EXPECT_FALSE(filter(Job("j", "u", "1", 1), Job("j", "u", "2", 1)));
  EXPECT_TRUE(filter(Job("j", "u", "1", 1), Job("j", "u", "2", 2)));
  EXPECT_TRUE(filter(Job("j", "u", "1", 1), Job("j", "v", "2", 1)));
  kube::Object deleting = Job("j", "u", "2", 1);
  deleting.mutable_json()["metadata"]["deletionTimestamp"] = "2026-11-21T07:15:00Z";
  EXPECT_TRUE(filter(Job("j", "u", "1", 1), deleting));
}

TEST_F(ControllerTest, E5_WorkersStartOnlyAfterTheCaches) {
  pods_ = MakeInformer(kube::resources::Pods());
  Controller::Options options;
  options.name = "slow";
  options.sync_timeout = base::milliseconds(10);
  Controller controller(std::move(options), reconciler_, clock_);
  ASSERT_THAT(controller.AddSource(*pods_, MapSelf()), base::IsOk());
  pods_->Start();  // its list gets no response
  controller.Enqueue(key_);
  EXPECT_THAT(controller.Start(),
              base::StatusIs(absl::StatusCode::kDeadlineExceeded, testing::HasSubstr("start controller 'slow'")));
  EXPECT_EQ(reconciler_.Calls(key_), 0);
  EXPECT_THAT(controller.Start(), base::StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(ControllerTest, StopIsIdempotentAndRefusesKeys) {
  Controller& controller = Make();
  ASSERT_THAT(controller.Start(), base::IsOk());
  controller.Stop();
  controller.Stop();
  controller.Enqueue(key_);
  EXPECT_EQ(controller.QueueLength(), 0u);
}

}  // namespace
}  // namespace medley::ops
