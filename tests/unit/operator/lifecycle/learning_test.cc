// A job whose profile is wrong for one pool, with the operator's decisions and the handlers of the scheduling service:
// what the job measures corrects predictions, trains the policy of its model, and moves the job.
#include <gmock/gmock.h>

#include <thread>

#include "common/base/testing/status_matchers.h"
#include "common/model/convert.h"
#include "common/model/observation.h"
#include "common/model/plan_result.h"
#include "scheduler-service/handlers/handlers.h"
#include "scheduler-service/handlers/learned_state_store.h"
#include "scheduler-service/planner/builtin.h"
#include "tests/unit/operator/lifecycle/fake_cluster.h"

namespace medley::ops::lifecycle {
namespace {

namespace pb = scheduler::v1;
using testing::HasSubstr;

constexpr char kTenant[] = "ml";
constexpr int kBatch = 512;
constexpr std::chrono::seconds kPatience{100};

class Service {
 public:
  Service() : training_([this](std::stop_token stop) { learned_.Run(clock_, std::move(stop)); }) {}

  absl::StatusOr<model::PlanResult> Plan(const model::PlanRequest& request) {
    pb::PlanRequest in;
    model::ToProto(request, in);
    sched::Call call;
    call.tenant = kTenant;
    pb::PlanResponse out;
    const absl::Status status = handlers_.Plan(in, call, out);
    if (!status.ok()) return status;
    return model::FromProto(out);
  }
  void Observe(const model::JobObservation& observation) {
    pb::ObserveRequest in;
    model::ToProto(observation, in);
    sched::Call call;
    call.tenant = kTenant;
    pb::ObserveResponse out;
    ASSERT_THAT(handlers_.Observe(in, call, out), base::IsOk());
    EXPECT_TRUE(out.policy_training().queued()) << out.policy_training().message();
    ++observed_;
  }
  int observed() const { return observed_; }
  std::string Metrics() const { return metrics_.Text(); }
  bool HasTrained() {
    const std::string all =
        fmt::format("medley_policy_training_observations_total{{result=\"trained\"}} {}", observed_);
    const base::SteadyTime end = clock_.Steady() + kPatience;
    while (Metrics().find(all) == std::string::npos) {
      if (clock_.Steady() > end) return false;
      clock_.SleepUntil(clock_.Steady() + base::milliseconds(20), {});
    }
    return true;
  }

 private:
  base::SystemClock clock_;
  mutable metrics::Registry metrics_;
  sched::CatalogStore catalog_;
  const sched::Registry planners_ = sched::BuiltinPlanners();
  const sched::HardwareCatalog hardware_ = *sched::HardwareCatalog::Builtin();
  sched::LearnedStateStore learned_{"", true, metrics_};
  sched::Handlers handlers_{{planners_, catalog_, hardware_, learned_, metrics_, clock_}, {}};
  int observed_ = 0;
  std::jthread training_;
};

// Pool a is the cheapest if its profile is right. If a batch takes twice as long there, b is.
class LearningTest : public testing::Test {
 protected:
  FakeCluster NewJob() {
    FakeCluster cluster;
    cluster.pools["a"].price = 1;
    cluster.pools["b"].price = 1.3;
    cluster.pools["c"].price = 4;
    cluster.SetSpec({{"training", {{"epochs", 1}, {"batchSize", kBatch}}}});
    cluster.planner = [this](const model::PlanRequest& request) {
      return AskForPlan::Outcome{service_.Plan(request), false};
    };
    cluster.measure = [this](const model::ExecutionPlan& plan, Observation& observation) {
      ASSERT_EQ(plan.stages.size(), 1U);
      const model::Group& group = plan.stages[0].groups[0];
      const double seconds = true_seconds_[group.pool] / group.units;
      observation.throughput = kBatch / seconds;
      observation.stages = {{group.units, seconds, 0, observation.throughput, 0}};
    };
    return cluster;
  }
  // From now on the job takes so long on each pool, and the service hears of it.
  void Change(FakeCluster& cluster, std::map<std::string, double> seconds) {
    true_seconds_ = std::move(seconds);
    cluster.measure(cluster.stored_plan()->plan, cluster.coordinator());
    cluster.on_observation = [this](model::JobObservation observation) {
      observation.job_uid = "first";
      service_.Observe(observation);
    };
  }
  static std::string PoolOf(const FakeCluster& cluster) { return cluster.stored_plan()->plan.stages[0].groups[0].pool; }

  std::map<std::string, double> true_seconds_ = {{"a", 1}, {"b", 1}, {"c", 1}};  // as the profiles say
  Service service_;
};

TEST_F(LearningTest, AJobLeavesThePoolWhoseProfileIsWrongAndTheNextJobDoesNotStartThere) {
  FakeCluster first = NewJob();
  ASSERT_TRUE(first.RunUntilTraining()) << first.trace();
  ASSERT_EQ(PoolOf(first), "a") << "as the profiles say";
  Change(first, {{"a", 2}, {"b", 1}, {"c", 1}});
  first.PassFor(std::chrono::minutes(4));
  EXPECT_TRUE(first.HasEvent("ReplanConsidered", "PredictionCorrected: move (Saves)")) << first.trace();
  EXPECT_EQ(PoolOf(first), "b") << first.trace();
  EXPECT_EQ(first.stored_plan()->reason, Reason::kPredictionCorrected);
  EXPECT_GE(service_.observed(), 8);
  first.PassFor(std::chrono::minutes(10));
  EXPECT_EQ(PoolOf(first), "b") << "there is no reason to return";
  EXPECT_EQ(first.stored_plan()->plan.generation, 2) << first.trace();
  EXPECT_TRUE(first.violations().empty());

  FakeCluster second = NewJob();
  ASSERT_TRUE(second.RunUntilTraining()) << second.trace();
  EXPECT_EQ(PoolOf(second), "b") << second.trace();
  const model::ExecutionPlan plan = second.stored_plan()->plan;
  EXPECT_NEAR(plan.estimate.throughput, kBatch * plan.stages[0].Units(), 0.02 * plan.estimate.throughput);
}

// Algorithm 1 of HeterPS during training: the policy of the model has learned what the profile does not say.
TEST_F(LearningTest, ThePolicyOfTheModelIsTrainedByWhatJobsMeasure) {
  FakeCluster cluster = NewJob();
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
  model::PlanRequest request = cluster.last_request();
  Change(cluster, {{"a", 2}, {"b", 1}, {"c", 1}});
  cluster.PassFor(std::chrono::minutes(4));
  ASSERT_TRUE(service_.HasTrained()) << service_.Metrics();
  EXPECT_THAT(service_.Metrics(), HasSubstr("medley_policy_training_observations_total{result=\"rejected\"} 0"));
  request.planner.name = "rl-lstm";
  request.planner.policy = {.name = "online", .inference_only = true};
  const auto inferred = service_.Plan(request);
  ASSERT_THAT(inferred, base::IsOk());
  ASSERT_TRUE(inferred->execution_plan);
  EXPECT_EQ(inferred->execution_plan->stages[0].groups[0].pool, "b");
}

// On a machine that all pools share, everything takes twice as long: the job may try another pool, and settles.
TEST_F(LearningTest, AnErrorThatAllPoolsShareDoesNotKeepTheJobMoving) {
  FakeCluster cluster = NewJob();
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
  Change(cluster, {{"a", 2}, {"b", 2}, {"c", 2}});
  cluster.PassFor(std::chrono::minutes(60));
  EXPECT_EQ(PoolOf(cluster), "a") << cluster.trace();
  EXPECT_LE(cluster.stored_plan()->plan.generation, 3) << cluster.trace();
}

TEST_F(LearningTest, AJobThatMeasuresWhatWasPromisedIsNotPlannedAgain) {
  FakeCluster cluster = NewJob();
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
  Change(cluster, {{"a", 1.1}, {"b", 1}, {"c", 1}});
  const int asked = cluster.plans_asked();
  cluster.PassFor(std::chrono::minutes(10));
  EXPECT_GE(service_.observed(), 8);
  EXPECT_EQ(cluster.plans_asked(), asked) << cluster.trace();
}

}  // namespace
}  // namespace medley::ops::lifecycle
