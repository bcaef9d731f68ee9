#include "cli/run/snapshot.h"

#include <gtest/gtest.h>

#include "operator/api/pool_status.h"

namespace medley::cli {
namespace {

using kube::Json;
using ops::ConditionStatus;

ops::JobStatus Running() {
  ops::JobStatus status;
  status.conditions.Set(ops::kPlannedCondition, ConditionStatus::kTrue, ops::Reason::kPlanFound, "a plan", 1,
                        base::WallTime());
  status.conditions.Set(ops::kRunningCondition, ConditionStatus::kTrue, ops::Reason::kGenerationCommitted, "it trains",
                        1, base::WallTime());
  status.plan = ops::PlanStatus{.generation = 3,
                                .planner = "exact",
                                .summary = "emb@1xold",
                                .stages = {{"0-5", "old", 1, 9000}},
                                .servers = 1,
                                .server_pool = "old",
                                .usd_per_hour = 0.11,
                                .throughput = 9000,
                                .usd_total = 0.0005,
                                .alternatives = {{"gpu only", 0, 0, 0, "needs 3, limit 2"}}};
  status.observed = ops::ObservedStatus{
      .throughput = 5311.7, .samples = 373, .samples_total = 1000, .loss = 0.33119, .metrics = {{"auc", 0.92}}};
  status.cost = ops::CostStatus{.spent_usd = 0.25, .saved_usd = 0.5};
  status.rescales = {{1, 2, "PriceChanged", 0.05, "2026-01-02T03:04:05Z", false, 0},
                     {2, 3, "MemberLost", 0.125, "2026-01-02T03:05:05Z", true, 4}};
  return status;
}

kube::Object Job(const ops::JobStatus& status) {
  return kube::Object(Json{{"metadata", {{"name", "j"}}}, {"status", status.ToJson()}});
}

// The view reads back every field that the operator writes.
TEST(SnapshotTest, ShowsWhatTheOperatorWrote) {
  const ops::JobStatus status = Running();
  const Snapshot view = TakeSnapshot(Job(status), {});
  EXPECT_EQ(view.phase, "Running");
  EXPECT_EQ(view.plan, status.plan);
  EXPECT_EQ(view.rescales, status.rescales);
  EXPECT_EQ(view.cost, *status.cost);
  EXPECT_EQ(view.observed.metrics, status.observed->metrics);
  EXPECT_EQ(view.observed.samples, 373);
  EXPECT_DOUBLE_EQ(view.progress_percent, 37.3);
  EXPECT_FALSE(view.complete || view.failed || view.rescaling);
  EXPECT_EQ(view.problem, "");
}

TEST(SnapshotTest, ProblemIsWhyTheJobDoesNotTrain) {
  ops::JobStatus status;
  status.conditions.Set(ops::kPlannedCondition, ConditionStatus::kFalse, ops::Reason::kInfeasible,
                        "no pool is fast enough", 1, base::WallTime());
  Snapshot view = TakeSnapshot(Job(status), {});
  EXPECT_EQ(view.phase, "Pending");
  EXPECT_EQ(view.problem, "Infeasible: no pool is fast enough");
  status.conditions.Set(ops::kFailedCondition, ConditionStatus::kTrue, ops::Reason::kBackoffLimitExceeded, "7 restarts",
                        1, base::WallTime());
  view = TakeSnapshot(Job(status), {});
  EXPECT_TRUE(view.failed);
  EXPECT_EQ(view.problem, "BackoffLimitExceeded: 7 restarts");
}

TEST(SnapshotTest, ANewPlanIsPreparedUntilItIsInForce) {
  ops::JobStatus status = Running();
  for (const bool rescaling : {true, false}) {
    status.conditions.Set(ops::kRescalingCondition, rescaling ? ConditionStatus::kTrue : ConditionStatus::kFalse,
                          ops::Reason::kPriceChanged, "from generation 1 to generation 2", 1, base::WallTime());
    EXPECT_EQ(TakeSnapshot(Job(status), {}).rescaling, rescaling);
  }
}

TEST(SnapshotTest, AJobWithoutStatusIsPending) {
  const Snapshot view = TakeSnapshot(kube::Object(Json{{"metadata", {{"name", "j"}}}}), {});
  EXPECT_EQ(view.phase, "Pending");
  EXPECT_FALSE(view.plan.has_value());
  EXPECT_EQ(view.progress_percent, 0);
}

TEST(SnapshotTest, PoolsHaveTheirPriceUseAndLimit) {
  ops::PoolStatus status;
  status.usd_per_unit_hour = 0.04;
  status.units = {.limit = 3, .capacity = 3, .used = 2, .free = 1};
  Json pool = {{"metadata", {{"name", "old"}}},
               {"spec", {{"class", "cpu"}, {"unit", {{"resources", {{"cpu", "1"}}}}}, {"limit", 4}}},
               {"status", status.ToJson()}};
  const Snapshot view = TakeSnapshot(kube::Object(), {kube::Object(pool)});
  ASSERT_EQ(view.pools.size(), 1U);
  EXPECT_EQ(view.pools[0].name, "old");
  EXPECT_DOUBLE_EQ(view.pools[0].usd_per_unit_hour, 0.04);
  EXPECT_EQ(view.pools[0].used, 2);
  EXPECT_EQ(view.pools[0].limit, 4) << "the limit of the spec; the status may lag behind";
}

}  // namespace
}  // namespace medley::cli
