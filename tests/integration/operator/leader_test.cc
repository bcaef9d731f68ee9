// Replicas of the operator: two processes against one API server, and two leaders at once.
#include <gmock/gmock.h>
#include <signal.h>

#include "common/base/file.h"
#include "common/base/testing/patience.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "operator/api/resources.h"
#include "tests/integration/operator/harness.h"
#include "tests/integration/operator/operator_process.h"

namespace medley::ops {
namespace {

using base::seconds;
using kube::Json;
using testing::HasSubstr;

// Everything passes, until Close; then calls wait for Open. Create can be closed for one pod alone.
class GatedClient final : public kube::Client {
 public:
  explicit GatedClient(kube::Client& client) : client_(client) {}
  void Close() { Set(true, ""); }
  void CloseForPod(const std::string& name) { Set(false, name); }
  void Open() { Set(false, ""); }
  bool WaitForBlocked() {
    base::MutexLock lock(mutex_);
    return changed_.WaitFor(mutex_, {}, seconds(60), [&] { return blocked_ > 0; });
  }

  absl::StatusOr<kube::Object> Get(const kube::Resource& resource, const kube::Key& key) override {
    return Pass(), client_.Get(resource, key);
  }
  absl::StatusOr<kube::ObjectList> List(const kube::Resource& resource, const kube::ListOptions& options) override {
    return Pass(), client_.List(resource, options);
  }
  absl::StatusOr<kube::Object> Create(const kube::Resource& resource, const kube::Object& object) override {
    return Pass(object.key().name), client_.Create(resource, object);
  }
  absl::StatusOr<kube::Object> Update(const kube::Resource& resource, const kube::Object& object,
                                      std::string_view subresource) override {
    return Pass(), client_.Update(resource, object, subresource);
  }
  absl::StatusOr<kube::Object> Patch(const kube::Resource& resource, const kube::Key& key, kube::PatchType type,
                                     const Json& patch, const kube::PatchOptions& options,
                                     std::string_view subresource) override {
    return Pass(), client_.Patch(resource, key, type, patch, options, subresource);
  }
  absl::Status Delete(const kube::Resource& resource, const kube::Key& key,
                      const kube::DeleteOptions& options) override {
    return Pass(), client_.Delete(resource, key, options);
  }
  absl::Status Watch(const kube::Resource& resource, const kube::WatchOptions& options, std::stop_token stop,
                     const std::function<bool(kube::WatchEvent)>& on_event) override {
    return client_.Watch(resource, options, std::move(stop), on_event);
  }
  absl::StatusOr<std::string> GetRaw(std::string_view path) override { return Pass(), client_.GetRaw(path); }
  absl::Status StreamRaw(std::string_view path, std::stop_token stop,
                         const std::function<bool(std::string_view)>& on_bytes) override {
    return client_.StreamRaw(path, std::move(stop), on_bytes);
  }

 private:
  void Set(bool closed, const std::string& pod) {
    base::MutexLock lock(mutex_);
    closed_ = closed;
    pod_ = pod;
    changed_.NotifyAll();
  }
  void Pass(const std::string& name = "") {
    base::MutexLock lock(mutex_);
    const auto open = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return !closed_ && (pod_.empty() || pod_ != name); };
    if (open()) return;
    ++blocked_;
    changed_.NotifyAll();
    changed_.WaitFor(mutex_, {}, seconds(120), open);
    --blocked_;
  }

  kube::Client& client_;
  base::Mutex mutex_;
  base::CondVar changed_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::string pod_ ABSL_GUARDED_BY(mutex_);
  int blocked_ ABSL_GUARDED_BY(mutex_) = 0;
};

class LeaderTest : public OperatorHarness {
 protected:
  LeaderTest() : folder_(base::MakeTempDir("medley-leader").value()) {}
  ~LeaderTest() override { base::RemoveTempDir(folder_); }
  void SetUp() override {
    OperatorHarness::SetUp();
    server_.WriteKubeconfig(folder_ / "kubeconfig");
  }

  const kube::Key lease_key_{ns_, "medley-operator"};
  kube::Object Lease() {
    const auto lease = client_->Get(kube::resources::Leases(), lease_key_);
    return lease.ok() ? *lease : kube::Object();
  }
  std::string Holder() { return Lease().String("/spec/holderIdentity"); }
  int64_t Term() {
    const Json term = Lease().At("/spec/leaseTransitions");
    return term.is_number_integer() ? term.get<int64_t>() : -1;
  }

  // In this process.
  OperatorOptions Replica(const std::string& identity, kube::Client& election) {
    OperatorOptions options = Options();
    options.election = OperatorOptions::Election{&election,
                                                 {.lease = lease_key_,
                                                  .identity = identity,
                                                  .lease_duration = seconds(15),
                                                  .renew_deadline = seconds(10),
                                                  .retry_period = base::milliseconds(200),
                                                  .release_on_cancel = true}};
    return options;
  }

  // Processes; the lease is long enough for a busy machine, and short enough to wait until it has run out.
  std::unique_ptr<OperatorProcess> StartProcess(const std::string& name,
                                                std::vector<std::string> more = {"--lease-duration", "12",
                                                                                 "--renew-deadline", "10",
                                                                                 "--retry-period", "0.5"}) {
    std::vector<std::string> arguments = {"--kubeconfig",
                                          (folder_ / "kubeconfig").string(),
                                          "--leader-elect",
                                          "--scheduler",
                                          scheduler_.address(),
                                          "--worker-port",
                                          std::to_string(coordinator_.port()),
                                          "--no-job-tls",  // the fake coordinator has no certificate
                                          "--status-interval",
                                          "0.2",
                                          "--recheck",
                                          "2",
                                          "--warm-up-seconds",
                                          "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    auto process = std::make_unique<OperatorProcess>(arguments, folder_ / (name + ".log"));
    EXPECT_TRUE(WaitUntil([&] { return process->HttpPort() != 0; }, base::Patience(seconds(60)))) << process->Log();
    return process;
  }
  // True once an operator has reconciled a pool that is created here.
  bool ReconcilesANewPool(const std::string& name) {
    Apply(ResourcePools(), Json{{"apiVersion", "medley.dev/v1alpha1"},
                                {"kind", "ResourcePool"},
                                {"metadata", {{"name", name}}},
                                {"spec",
                                 {{"class", "CPU"},
                                  {"limit", 1},
                                  {"namespaces", {"another"}},  // no news for the jobs of this test
                                  {"unit", {{"resources", {{"cpu", "1"}}}}},
                                  {"price", {{"usdPerUnitHour", "0.1"}}}}}});
    return WaitUntil(
        [&] {
          const auto pool = client_->Get(ResourcePools(), {"", name});
          return pool.ok() && !pool->At("/status/conditions").is_null();
        },
        base::Patience(seconds(60)));
  }
  std::set<std::string> TermsOfPods() {
    std::set<std::string> terms;
    const auto pods = client_->List(kube::resources::Pods(), {.ns = ns_});
    for (const kube::Object& pod : pods.ok() ? pods->items : std::vector<kube::Object>()) {
      terms.insert(pod.annotation(kLeaderTermAnnotation));
    }
    return terms;
  }
  int64_t PlanGeneration() {
    const auto map = client_->Get(kube::resources::ConfigMaps(), {ns_, "adult-plan"});
    if (!map.ok()) return 0;
    const Json plan = Json::parse(map->String("/data/plan.json"), nullptr, false);
    const Json generation = plan.is_object() ? plan.value("generation", Json()) : Json();
    return generation.is_string()   ? std::stoll(generation.get<std::string>())
           : generation.is_number() ? generation.get<int64_t>()
                                    : 0;
  }

  const std::filesystem::path folder_;
};

INSTANTIATE_TEST_SUITE_P(On, LeaderTest, testing::ValuesIn(kube::ServersUnderTest()), kube::ServerName);

// A leader stops in the middle of a change of plans (its requests hang), another takes over and changes the plan again;
// then the first one's requests arrive.
TEST_P(LeaderTest, G7_APausedLeaderThatWakesChangesNothing) {
  GatedClient api(*operators_), election(*client_);
  OperatorApp first(Replica("first", election), api, clock_);
  ASSERT_THAT(first.Start({}), base::IsOk());
  RunJob();
  EXPECT_EQ(Holder(), "first");
  EXPECT_EQ(TermsOfPods(), std::set<std::string>{"0"});

  OperatorApp second(Replica("second", *client_), *operators_, clock_);
  ASSERT_THAT(second.Start({}), base::IsOk());
  EXPECT_FALSE(second.leading());

  // The first one makes the pods of plan 2 and hangs at the last of them, before it sends the plan.
  api.CloseForPod("adult-0-cpu-3");
  scheduler_.Publish(20);
  ASSERT_TRUE(api.WaitForBlocked());
  election.Close();
  EXPECT_EQ(PlanGeneration(), 2);
  EXPECT_EQ(coordinator_.applied().size(), 1u);

  // The second one takes over and finishes the move, then makes another.
  ASSERT_TRUE(Eventually(
      [&] {
        clock_.Advance(base::milliseconds(100));
        return second.leading();
      },
      "the second leads"));
  EXPECT_THAT(first.Wait({}),
              base::StatusIs(absl::StatusCode::kAborted));  // where a process would end
  EXPECT_FALSE(first.leading());
  EXPECT_EQ(Term(), 1);
  ASSERT_TRUE(Eventually([&] { return coordinator_.applied().size() == 2; }, "plan 2 by the second"));
  EXPECT_EQ(coordinator_.leader_term(), 1);
  const std::set<std::string> pods = {"adult-coordinator", "adult-0-cpu-0", "adult-0-cpu-1",
                                      "adult-0-cpu-2",     "adult-0-cpu-3", "adult-server-0"};
  ASSERT_TRUE(Eventually([&] { return PodNames() == pods; }, "the pods of plan 2"));
  ASSERT_TRUE(WaitForCondition("PodsReady", "True"));
  const auto applied = coordinator_.applied();
  const int64_t plan = PlanGeneration();

  // The first one's request arrives, and the pass goes on to send the plan.
  api.Open();
  ASSERT_TRUE(Eventually([&] { return coordinator_.refused() > 0; }, "the first one's plan is refused"));
  election.Open();
  Settle();
  EXPECT_EQ(coordinator_.applied(), applied);
  EXPECT_EQ(coordinator_.leader_term(), 1);
  EXPECT_EQ(PodNames(), pods);
  EXPECT_EQ(PlanGeneration(), plan);
  EXPECT_EQ(Holder(), "second");
  EXPECT_TRUE(second.leading());
  EXPECT_EQ(Status().restarts, 0);
  first.Stop();
  EXPECT_EQ(Holder(), "second");  // nothing to give up
  second.Stop();
  EXPECT_EQ(Holder(), "");
}

// When the Lease is deleted, terms begin again at 0, and coordinators refuse them.
TEST_P(LeaderTest, G7_ALeaderWhoseTermsBeganAnewTakesANewerOne) {
  OperatorApp app(Replica("only", *client_), *operators_, clock_);
  ASSERT_THAT(app.Start({}), base::IsOk());
  RunJob();
  EXPECT_EQ(Term(), 0);
  coordinator_.ServeTerm(4);
  EXPECT_TRUE(Eventually([&] { return Term() == 5; }, "a newer term"));
  scheduler_.Publish(20);
  EXPECT_TRUE(Eventually([&] { return coordinator_.applied().size() == 2; }, "it is obeyed again"));
  EXPECT_EQ(coordinator_.leader_term(), 5);
  app.Stop();
}

// Names of pods follow from the plan: a pod of this job is found again, and one of another owner is reported.
TEST_P(LeaderTest, F4_AForeignPodOfTheSameNameIsReportedAndNotTouched) {
  kube::Object stranger(kube::resources::Pods(), {ns_, "adult-0-cpu-1"});
  stranger.mutable_json()["spec"]["containers"] = Json::array({{{"name", "c"}, {"image", "i"}}});
  Apply(kube::resources::Pods(), stranger.json());
  const std::string uid = Get(kube::resources::Pods(), stranger.key()).uid();
  StartOperator();
  Apply(TrainingJobs(), JobJson());
  EXPECT_TRUE(Eventually([&] { return HasEvent("NameTaken", "adult-0-cpu-1 belongs to no controller"); }, "event"));
  EXPECT_EQ(Get(kube::resources::Pods(), stranger.key()).uid(), uid);
  ASSERT_THAT(client_->Delete(kube::resources::Pods(), stranger.key()), base::IsOk());
  EXPECT_TRUE(WaitForCondition("PodsReady", "True"));
  EXPECT_NE(Get(kube::resources::Pods(), stranger.key()).uid(), uid);
}

TEST_P(LeaderTest, AKilledLeaderIsFollowedByTheStandby) {
  auto a = StartProcess("a");
  ASSERT_TRUE(WaitUntil([&] { return a->Leads(); }, base::Patience(seconds(60)))) << a->Log();
  auto b = StartProcess("b");
  EXPECT_EQ(b->Metric("medley_leader"), 0);
  EXPECT_EQ(b->Get("/readyz"), "ok\n");  // a standby is ready
  EXPECT_EQ(b->Get("/healthz"), "ok\n");
  if (!server_.real()) RunJob();  // a real server has no logs of profilers that no kubelet ran
  const std::string holder = Holder();
  const int plans = scheduler_.plans();
  a->Signal(SIGKILL);
  ASSERT_TRUE(WaitUntil([&] { return a->Ended().has_value(); }, seconds(60)));
  EXPECT_TRUE(ReconcilesANewPool("after-kill"));
  EXPECT_TRUE(b->Leads());
  EXPECT_NE(Holder(), holder);
  EXPECT_EQ(Term(), 1);
  if (server_.real()) return;
  const std::string before = Get(kube::resources::Pods(), {ns_, "adult-0-cpu-1"}).uid();
  SetPod("adult-0-cpu-1", {{"phase", "Failed"}});
  EXPECT_TRUE(Eventually(
      [&] {
        const auto pod = client_->Get(kube::resources::Pods(), {ns_, "adult-0-cpu-1"});
        return pod.ok() && pod->uid() != before && pod->String("/status/phase") == "Running";
      },
      "the other goes on with the job"));
  EXPECT_EQ(coordinator_.applied().size(), 1u);  // the same plan, not another
  EXPECT_EQ(scheduler_.plans(), plans);
  EXPECT_EQ(Status().restarts, 0);
}

TEST_P(LeaderTest, ALeaderStoppedBySigstopEndsWhenItWakes) {
  auto a = StartProcess("a");
  ASSERT_TRUE(WaitUntil([&] { return a->Leads(); }, base::Patience(seconds(60)))) << a->Log();
  auto b = StartProcess("b");
  if (!server_.real()) RunJob();
  a->Pause();
  EXPECT_TRUE(ReconcilesANewPool("after-stop"));
  EXPECT_EQ(Term(), 1);
  const std::string holder = Holder();
  if (!server_.real()) {  // news for both: the one that sleeps has it in its socket when it wakes
    SetPod("adult-0-cpu-1", {{"phase", "Failed"}});
    scheduler_.Publish(20);
    Settle();
  }
  a->Signal(SIGCONT);
  EXPECT_TRUE(WaitUntil([&] { return a->Ended().has_value(); }, base::Patience(seconds(60))));
  EXPECT_EQ(a->Ended(), EXIT_FAILURE);
  EXPECT_THAT(a->Log(), HasSubstr("the lead was lost"));
  EXPECT_TRUE(b->Leads());
  EXPECT_EQ(Holder(), holder);
  EXPECT_EQ(Term(), 1);
  if (server_.real()) return;
  EXPECT_TRUE(WaitForCondition("PodsReady", "True"));
  std::set<int64_t> generations;
  for (const auto& [generation, reason] : coordinator_.applied())
    EXPECT_TRUE(generations.insert(generation).second) << generation;
  EXPECT_EQ(Status().restarts, 0);
}

// The standby need not wait for the lease to run out: that would take an hour.
TEST_P(LeaderTest, G6_ALeaderThatIsTerminatedReleasesTheLease) {
  const std::vector<std::string> lease = {"--lease-duration", "3600", "--renew-deadline", "1800"};
  auto a = StartProcess("a", lease);
  ASSERT_TRUE(WaitUntil([&] { return a->Leads(); }, base::Patience(seconds(60)))) << a->Log();
  auto b = StartProcess("b", lease);
  base::SystemClock real;
  const base::SteadyTime terminated = real.Steady();
  a->Signal(SIGTERM);
  EXPECT_TRUE(WaitUntil([&] { return b->Leads(); }, base::Patience(seconds(60))));
  std::cout << "terminated -> the other leads: " << base::ToSeconds(real.Steady() - terminated) << " s\n";
  EXPECT_TRUE(WaitUntil([&] { return a->Ended().has_value(); }, base::Patience(seconds(60))));
  EXPECT_EQ(a->Ended(), EXIT_SUCCESS) << a->Log();
  EXPECT_EQ(Term(), 1);
  EXPECT_TRUE(ReconcilesANewPool("after-term"));
}

}  // namespace
}  // namespace medley::ops
