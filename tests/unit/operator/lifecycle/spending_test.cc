// Tests what the pods of a job cost.
#include "operator/lifecycle/spending.h"

#include <gtest/gtest.h>

#include <utility>

#include "tests/unit/operator/lifecycle/fake_cluster.h"

namespace medley::ops::lifecycle {
namespace {

using Pods = std::map<std::string, PaidPod>;

base::WallTime At(int hours) { return base::WallTime(std::chrono::hours(hours)); }

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
