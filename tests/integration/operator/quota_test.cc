// Units that are added and removed: ResourceQuotas lowered and raised, nodes added, pods refused.
#include <gmock/gmock.h>

#include "common/base/status.h"
#include "common/base/testing/status_matchers.h"
#include "common/model/execution_plan.h"
#include "common/model/plan_result.h"
#include "common/model/planning.h"
#include "operator/api/resources.h"
#include "tests/integration/operator/harness.h"

namespace medley::ops {
namespace {

using kube::Json;

// Passes on all but the creation of pods whose names contain `refuse`.
class RefusingClient final : public kube::Client {
 public:
  RefusingClient(kube::Client& client, std::string refuse) : client_(client), refuse_(std::move(refuse)) {}
  void Admit() { admit_ = true; }
  // As a role without rights on this kind. Before the first call.
  void ForbidReading(const std::string& kind) { forbidden_ = kind; }

  absl::StatusOr<kube::Object> Create(const kube::Resource& resource, const kube::Object& object) override {
    if (!admit_ && resource.kind == "Pod" && object.key().name.find(refuse_) != std::string::npos) {
      return base::PermissionDenied(
          "pods \"{}\" is forbidden: exceeded quota: team, requested: requests.cpu=1, used: "
          "requests.cpu=4, limited: requests.cpu=4",
          object.key().name);
    }
    return client_.Create(resource, object);
  }
  absl::StatusOr<kube::Object> Get(const kube::Resource& resource, const kube::Key& key) override {
    return client_.Get(resource, key);
  }
  absl::StatusOr<kube::ObjectList> List(const kube::Resource& resource, const kube::ListOptions& options) override {
    if (resource.kind == forbidden_) return base::PermissionDenied("cannot list {}", resource.plural);
    return client_.List(resource, options);
  }
  absl::StatusOr<kube::Object> Update(const kube::Resource& resource, const kube::Object& object,
                                      std::string_view subresource) override {
    return client_.Update(resource, object, subresource);
  }
  absl::StatusOr<kube::Object> Patch(const kube::Resource& resource, const kube::Key& key, kube::PatchType type,
                                     const Json& patch, const kube::PatchOptions& options,
                                     std::string_view subresource) override {
    return client_.Patch(resource, key, type, patch, options, subresource);
  }
  absl::Status Delete(const kube::Resource& resource, const kube::Key& key,
                      const kube::DeleteOptions& options) override {
    return client_.Delete(resource, key, options);
  }
  absl::Status Watch(const kube::Resource& resource, const kube::WatchOptions& options, std::stop_token stop,
                     const std::function<bool(kube::WatchEvent)>& on_event) override {
    if (resource.kind == forbidden_) return base::PermissionDenied("cannot watch {}", resource.plural);
    return client_.Watch(resource, options, std::move(stop), on_event);
  }
  absl::StatusOr<std::string> GetRaw(std::string_view path) override { return client_.GetRaw(path); }
  absl::Status StreamRaw(std::string_view path, std::stop_token stop,
                         const std::function<bool(std::string_view)>& on_bytes) override {
    return client_.StreamRaw(path, std::move(stop), on_bytes);
  }

 private:
  kube::Client& client_;
  const std::string refuse_;
  std::atomic<bool> admit_{false};
  std::string forbidden_;
};

// As many cpu units as the limit allows: a server and up to 3 trainers.
absl::StatusOr<model::PlanResult> AsMuchAsAllowed(const model::PlanRequest& request) {
  int limit = 0;
  for (const model::Resource& resource : request.resources) {
    if (resource.name == "cpu") limit = resource.limit;
  }
  const int trainers = std::min(limit - 1, 3);
  model::PlanResult result;
  if (trainers < 1) {
    result.reasons = {{"limit", "cpu", 2, static_cast<double>(limit), "needs 2 units of cpu"}};
    return result;
  }
  model::ExecutionPlan plan;
  plan.stages = {{{{0, 3}}, {{"cpu", trainers, 1}}, {{{{0, 1}}, {.kind = model::SyncKind::kParameterServer}}}, 0}};
  plan.servers = model::Servers{"cpu", 1};
  plan.estimate.throughput = 500 * trainers;
  model::ProvisionedPlan provisioned;
  provisioned.stages = {{0, 2, "cpu", trainers, 500.0 * trainers, 0, 0}};
  provisioned.server_units = 1;
  provisioned.throughput = 500 * trainers;
  provisioned.cost_per_hour = 0.04 * (trainers + 1);
  result.plan = provisioned;
  result.execution_plan = plan;
  return result;
}

class QuotaTest : public OperatorHarness {
 protected:
  void PutQuota(const std::string& cpu) {
    const kube::Key key{ns_, "team"};
    const Json hard = {{"requests.cpu", cpu}};
    if (Exists(kube::resources::ResourceQuotas(), key)) {
      ASSERT_THAT(
          client_->Patch(kube::resources::ResourceQuotas(), key, kube::PatchType::kMerge, {{"spec", {{"hard", hard}}}}),
          base::IsOk());
    } else {
      Apply(kube::resources::ResourceQuotas(), {{"apiVersion", "v1"},
                                                {"kind", "ResourceQuota"},
                                                {"metadata", {{"name", "team"}, {"namespace", ns_}}},
                                                {"spec", {{"hard", hard}}}});
    }
    hard_ = hard;
    CountQuota();
  }
  // Does what the quota controller does, on a server without one.
  void CountQuota() {
    if (server_.real() || hard_.is_null()) return;
    int64_t used = 100;  // the coordinator
    for (const std::string& name : PodNames()) {
      const bool unit = name.find("-cpu-") != std::string::npos || name.find("-server-") != std::string::npos;
      used += unit ? 1000 : 0;
    }
    const Json status = {{"hard", hard_}, {"used", {{"requests.cpu", std::to_string(used) + "m"}}}};
    if (status == counted_) return;
    counted_ = status;
    ASSERT_THAT(client_->Patch(kube::resources::ResourceQuotas(), {ns_, "team"}, kube::PatchType::kMerge,
                               {{"status", status}}, {}, "status"),
                base::IsOk());
  }
  bool Applied(size_t count, const std::string& reason) {
    return Eventually(
        [&] {
          CountQuota();
          const auto applied = coordinator_.applied();
          return applied.size() == count && applied.back().second == reason;
        },
        reason + " as plan " + std::to_string(count));
  }
  int Limit(const std::string& pool) {
    for (const model::Resource& resource : scheduler_.last().resources) {
      if (resource.name == pool) return static_cast<int>(resource.limit);
    }
    return -1;
  }

  Json hard_;
  Json counted_;
};

INSTANTIATE_TEST_SUITE_P(On, QuotaTest, testing::ValuesIn(kube::ServersUnderTest()), kube::ServerName);

TEST_P(QuotaTest, AQuotaLoweredAndRaisedMovesTheJob) {
  scheduler_.SetPlanner(AsMuchAsAllowed);
  PutQuota("40");
  StartOperator();
  kube::Json job = JobJson();
  job["spec"]["objective"] = {{"minThroughput", 1400}};
  Apply(TrainingJobs(), job);
  ASSERT_TRUE(WaitForCondition("Running", "True"));
  ASSERT_TRUE(WaitForCondition("PodsReady", "True"));
  EXPECT_EQ(coordinator_.members().size(), 4u);
  PutQuota("3200m");  // less than is used: 3 units and the coordinator
  ASSERT_TRUE(Applied(2, "CapacityLowered"));
  EXPECT_EQ(Limit("cpu"), 3);
  EXPECT_EQ(coordinator_.members().size(), 3u);
  EXPECT_TRUE(Eventually(
      [&] {
        CountQuota();
        return PodNames().size() == 4;
      },
      "the surplus pod is deleted"));
  coordinator_.Progress(1000, 1000);  // below the goal
  PutQuota("40");
  ASSERT_TRUE(Applied(3, "CapacityChanged"));
  EXPECT_EQ(coordinator_.members().size(), 4u);
  EXPECT_EQ(Status().restarts, 0);
}

TEST_P(QuotaTest, AQuotaLoweredTooFarIsReportedAndNothingIsTouched) {
  scheduler_.SetPlanner(AsMuchAsAllowed);
  PutQuota("40");
  StartOperator();
  RunJob();
  PutQuota("1");
  EXPECT_TRUE(Eventually([&] { return HasEvent("ReplanInfeasible", "bounded by ResourceQuota team: requests.cpu"); },
                         "the quota is named"));
  const int asked = scheduler_.plans();
  Settle();
  EXPECT_EQ(coordinator_.applied().size(), 1u);
  EXPECT_EQ(scheduler_.plans(), asked) << "asked once, not in a loop";
  EXPECT_TRUE(Status().conditions.IsTrue("Running"));
}

TEST_P(QuotaTest, AChangeThatLeavesThePlanItsUnitsAsksNothing) {
  over_window_ = std::chrono::minutes(5);  // longer than the test on any machine
  StartOperator();
  RunJob();
  Settle();
  const int asked = scheduler_.plans();
  // The pool's limit is 16 of 64 units: no unit more.
  for (int i = 0; i < 10; ++i) {
    AddNode("extra" + std::to_string(i), {{"cpu", "1"}, {"pods", "10"}});
  }
  Settle();
  // Absent for a moment, shorter than the window.
  SetNodeReady("n1", false);
  Settle();
  SetNodeReady("n1", true);
  Settle();
  EXPECT_EQ(scheduler_.plans(), asked);
  EXPECT_EQ(coordinator_.applied().size(), 1u);
}

TEST_P(QuotaTest, ANewNodeIsMeasuredAndConsidered) {
  PatchNode("n1", {{"spec", {{"unschedulable", true}}}});
  AddNode("c1", {{"cpu", "8"}, {"pods", "50"}});
  StartOperator();
  RunJob();
  EXPECT_EQ(Limit("gpu"), -1);  // not offered: not measured
  AddNode("g1", {{"cpu", "8"}, {"example.com/gpu", "4"}, {"pods", "50"}});
  EXPECT_TRUE(Eventually([&] { return Limit("gpu") == 2; }, "asked"));
  EXPECT_TRUE(Eventually([&] { return HasEvent("Profiled", "pool gpu"); }, "the Event"));
  EXPECT_TRUE(Eventually([&] { return HasEvent("ReplanConsidered", "CapacityChanged"); }, "considered"));
}

TEST_P(QuotaTest, APodThatAQuotaRefusesIsReportedAndTheJobIsPlannedWithoutIt) {
  auto refusing = std::make_unique<RefusingClient>(*operators_, "-gpu-");
  const std::unique_ptr<kube::Client> behind = std::move(operators_);
  operators_ = std::move(refusing);
  coordinator_.SetAutoCommit(false);
  StartOperator();
  Apply(TrainingJobs(), JobJson());
  EXPECT_TRUE(Eventually([&] { return HasEvent("FailedCreatePod", "exceeded quota: team"); }, "the Event"));
  // The other pods exist, and the coordinator has the plan: nothing else waits for the quota.
  EXPECT_TRUE(Eventually([&] { return coordinator_.applied().size() == 1; }, "applied"));
  EXPECT_TRUE(Eventually([&] { return PodNames().contains("adult-0-cpu-1"); }, "the others"));
  Settle();
  clock_.Advance(base::seconds(61));
  EXPECT_TRUE(Eventually([&] { return coordinator_.applied().size() == 2; }, "another plan"));
  EXPECT_EQ(coordinator_.applied().back().second, "MemberUnschedulable");
  EXPECT_EQ(coordinator_.members().count("adult-1-gpu-0"), 0u);
  StopOperator();
  operators_.reset();  // before what it passes on to
}

// The operator runs with a role that does not come from the chart.
TEST_P(QuotaTest, AnOperatorThatMayNotReadPriorityClassesPlansJobs) {
  RefusingClient client(*operators_, "no such pod");
  client.ForbidReading("PriorityClass");
  app_ = std::make_unique<OperatorApp>(Options(), client, clock_);
  ASSERT_THAT(app_->Start({}), base::IsOk());
  Apply(TrainingJobs(), JobJson());
  EXPECT_TRUE(WaitForCondition("Running", "True"));
  StopOperator();  // before its client is destroyed
}

}  // namespace
}  // namespace medley::ops
