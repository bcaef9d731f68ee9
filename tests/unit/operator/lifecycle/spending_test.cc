// Tests what the pods of a job cost.
#include "operator/lifecycle/spending.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <utility>

#include "tests/unit/operator/lifecycle/fake_cluster.h"

namespace medley::ops::lifecycle {
namespace {

using Pods = std::map<std::string, PaidPod>;

base::WallTime At(int hours) { return base::WallTime(std::chrono::hours(hours)); }

double UsdOf(const Pods& before, const Pods& now, base::WallTime from, base::WallTime until) {
  double usd = 0;
  for (const goodput::Paid& paid : PaidSince(before, now, {from, until, std::nullopt, false})) usd += paid.usd;
  return usd;
}

// Seconds by pool and use, "a held 3600".
std::string UsesOf(const Pods& now, const PaidTime& time) {
  std::string text;
  for (const goodput::Paid& paid : PaidSince({}, now, time)) {
    const char* use = paid.use == goodput::Paid::Use::kWaiting ? "waiting"
                      : paid.use == goodput::Paid::Use::kHeld  ? "held"
                                                               : "idle";
    text += fmt::format("{}{} {} {:.0f}", text.empty() ? "" : ", ", paid.pool, use, paid.seconds);
  }
  return text;
}

TEST(PaidSinceTest, AUnitWaitsForItsNodeAndIsIdleAfterTheEnd) {
  PaidPod pod{At(10), At(20), 2};
  pod.pool = "a";
  EXPECT_EQ(UsesOf({{"u", pod}}, {At(0), At(13), std::nullopt, false}), "a waiting 10800");
  pod.node_at = At(11);
  EXPECT_EQ(UsesOf({{"u", pod}}, {At(0), At(13), std::nullopt, false}), "a waiting 3600, a held 7200");
  EXPECT_EQ(UsesOf({{"u", pod}}, {At(0), At(13), std::nullopt, true}), "a waiting 3600, a waiting 7200");
  EXPECT_EQ(UsesOf({{"u", pod}}, {At(12), At(23), At(15), false}), "a held 10800, a idle 18000");
  EXPECT_EQ(UsesOf({{"u", pod}}, {At(16), At(18), At(15), false}), "a idle 7200");
}

TEST(PaidSinceTest, APodWithoutPriceIsCountedWhereItIsHeld) {
  PaidPod pod{At(10), std::nullopt, 0};
  pod.pool = "a";
  pod.part = 0.5;
  pod.node_at = At(10);
  EXPECT_EQ(UsesOf({{"u", pod}}, {At(0), At(12), std::nullopt, false}), "");
  pod.held = true;
  EXPECT_EQ(UsesOf({{"u", pod}}, {At(0), At(12), std::nullopt, false}), "a held 3600");
}

TEST(UsdOfTest, APodCostsFromItsCreationToItsEnd) {
  EXPECT_DOUBLE_EQ(UsdOf({}, {{"a", {At(10), std::nullopt, 2}}}, base::WallTime(), At(13)), 6);
  EXPECT_DOUBLE_EQ(UsdOf({}, {{"a", {At(10), At(11), 2}}}, base::WallTime(), At(13)), 2);
  EXPECT_DOUBLE_EQ(UsdOf({}, {{"a", {At(10), std::nullopt, 2}}}, At(12), At(13)), 2);
  EXPECT_DOUBLE_EQ(UsdOf({}, {{"a", {At(10), At(11), 2}}}, At(12), At(13)), 0);
  EXPECT_DOUBLE_EQ(UsdOf({}, {{"a", {At(14), std::nullopt, 2}}}, At(12), At(13)), 0);  // the clocks differ
}

TEST(UsdOfTest, ThePriceOfTheLastPassCountsUntilNow) {
  const Pods before = {{"a", {At(10), std::nullopt, 2}}};
  EXPECT_DOUBLE_EQ(UsdOf(before, {{"a", {At(10), std::nullopt, 5}}}, At(12), At(13)), 2);
  // A pod that had no price, or no node, has the first one.
  EXPECT_DOUBLE_EQ(UsdOf({{"a", {At(10), std::nullopt, 0}}}, {{"a", {At(10), std::nullopt, 5}}}, At(12), At(13)), 5);
}

TEST(UsdOfTest, APodThatDoesNotExistAnyMoreCostsUntilNow) {
  EXPECT_DOUBLE_EQ(UsdOf({{"a", {At(10), std::nullopt, 2}}}, {}, At(12), At(13)), 2);
  EXPECT_DOUBLE_EQ(UsdOf({{"a", {At(10), At(11), 2}}}, {}, At(12), At(13)), 0);
}

TEST(SpendingTest, ProfilersAreCountedAndTheJobThatEndedCostsNoMore) {
  FakeCluster cluster = FakeCluster::Training();
  cluster.Pass();
  const double started = cluster.status().cost ? cluster.status().cost->spent_usd : 0;
  cluster.coordinator().phase = JobPhase::kComplete;
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  const double ended = cluster.status().cost->spent_usd;
  EXPECT_GE(ended, started);
  cluster.Advance(std::chrono::hours(10));
  EXPECT_EQ(cluster.Pass().spent_usd, 0);
  EXPECT_EQ(cluster.status().cost->spent_usd, ended);
}

TEST(SpendingTest, NothingIsCountedBeforeThePricesAreKnown) {
  FakeCluster cluster = FakeCluster::Training();
  cluster.RestartOperator();
  const std::optional<int64_t> revision = std::exchange(cluster.catalog_revision, std::nullopt);
  cluster.Advance(std::chrono::minutes(30));
  EXPECT_EQ(cluster.Pass().spent_usd, 0);
  cluster.Advance(std::chrono::minutes(30));
  cluster.catalog_revision = revision;
  EXPECT_GE(cluster.Pass().spent_usd, 2);  // of two members, the half hour before included
}

double Sum(const GoodputStatus& goodput, double spent) {
  EXPECT_NEAR(goodput.bill.Usd().Sum(), spent, 1e-4);  // the status rounds each category
  return goodput.bill.Usd().Sum();
}

TEST(SpendingTest, TheBillSumsToWhatWasSpentWhateverTheOperatorForgets) {
  FakeCluster cluster = FakeCluster::Training();
  goodput::Account& units = cluster.coordinator().units;
  units.id = "1";
  for (int pass = 0; pass < 20; ++pass) {
    cluster.Advance(std::chrono::minutes(7));
    for (const auto& [pool, row] : cluster.status().goodput.value_or(GoodputStatus()).bill.pools) {
      units.pools[pool][goodput::Category::kTraining] += pass == 12 ? -100 : 300;
      units.pools[pool][goodput::Category::kLost] += pass == 12 ? 100 : 0;
    }
    if (pass % 5 == 3) cluster.RestartOperator();
    cluster.Pass();
    ASSERT_TRUE(cluster.status().goodput) << cluster.trace();
    Sum(*cluster.status().goodput, cluster.status().cost->spent_usd);
  }
  cluster.PassFor(std::chrono::minutes(70));  // until the status is written
  const goodput::Bill bill = cluster.status().goodput->bill;
  EXPECT_GT(bill.Seconds()[goodput::Category::kTraining], 0);
  EXPECT_GT(bill.Seconds()[goodput::Category::kLost], 0);
  EXPECT_GT(Sum(*cluster.status().goodput, cluster.status().cost->spent_usd), 0);
}

TEST(SpendingTest, TheFirstPlanPromisesWhatTheWholeJobCosts) {
  FakeCluster cluster = FakeCluster::Training();
  ASSERT_TRUE(cluster.status().goodput && cluster.status().goodput->promised) << cluster.trace();
  const PromiseStatus promised = *cluster.status().goodput->promised;
  EXPECT_GE(promised.usd, cluster.status().plan->usd_total);
  EXPECT_EQ(promised.usd_per_hour, cluster.status().plan->usd_per_hour);
}

// A job whose pods only wait pays for them.
TEST(SpendingTest, WhatAWaitingJobSpendsIsPublishedSoon) {
  FakeCluster cluster = FakeCluster::Training();
  cluster.coordinator().throughput = 0;
  const double before = cluster.status().cost ? cluster.status().cost->spent_usd : 0;
  cluster.PassFor(std::chrono::minutes(20));
  const double after = cluster.status().cost ? cluster.status().cost->spent_usd : 0;
  EXPECT_GT(after, before);
}

TEST(SpendingTest, MoneyAloneDoesNotWriteTheStatus) {
  FakeCluster cluster = FakeCluster::Training();
  int writes = 0;
  for (int pass = 0; pass < 360; ++pass) {
    cluster.Advance(base::seconds(5));
    for (const std::string& action : cluster.Pass().actions) writes += action.starts_with("patch") ? 1 : 0;
  }
  EXPECT_LE(writes, 1);
}

}  // namespace
}  // namespace medley::ops::lifecycle
