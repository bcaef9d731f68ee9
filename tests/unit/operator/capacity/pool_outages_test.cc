#include "operator/capacity/pool_outages.h"

#include <gmock/gmock.h>

namespace medley::ops {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr base::WallTime kStart{base::seconds(1'700'000'000)};

kube::Object Pool(int generation = 1, const std::vector<PoolOutage>& stored = {}) {
  return kube::Object(kube::Json{{"metadata", {{"name", "a"}, {"uid", "u"}, {"generation", generation}}},
                                 {"status", {{"outages", ToJson(stored)}}}});
}

TEST(PoolOutageTest, EachFailureInARowDoublesItUpToTwoHours) {
  std::optional<PoolOutage> outage;
  base::WallTime now = kStart;
  std::vector<int64_t> minutes;
  for (int i = 0; i < 8; ++i) {
    outage = AfterFailure(outage, "", 1, now);
    minutes.push_back(std::chrono::duration_cast<std::chrono::minutes>(outage->until - now).count());
    now = outage->until + std::chrono::minutes(15);
  }
  EXPECT_THAT(minutes, ElementsAre(5, 10, 20, 40, 80, 120, 120, 120));
  EXPECT_EQ(outage->failures, 8);
  EXPECT_EQ(outage->since, kStart);
  EXPECT_EQ(AfterFailure(outage, "", 2, now).failures, 1) << "the pool was edited";
  EXPECT_EQ(AfterFailure(outage, "", 1, now + std::chrono::hours(25)).failures, 1) << "forgotten";
}

TEST(PoolOutageTest, FindsTheActiveOneOfAZone) {
  const std::vector<PoolOutage> outages = {AfterFailure(std::nullopt, "z1", 1, kStart)};
  EXPECT_NE(FindActive(outages, 1, "z1", kStart + std::chrono::minutes(4)), nullptr);
  EXPECT_EQ(FindActive(outages, 1, "z1", kStart + std::chrono::minutes(5)), nullptr);
  EXPECT_EQ(FindActive(outages, 1, "z2", kStart), nullptr);
  EXPECT_EQ(FindActive(outages, 2, "z1", kStart), nullptr) << "the pool was edited";
  EXPECT_EQ(FindActive(outages, 1, "z1", kStart - std::chrono::hours(9)), nullptr) << "the clock was set back";
  EXPECT_NE(FindActive({AfterFailure(std::nullopt, "", 1, kStart)}, 1, "z2", kStart), nullptr);
}

TEST(PoolOutageTest, SurvivesJson) {
  const std::vector<PoolOutage> outages = {AfterFailure(std::nullopt, "", 1, kStart + base::milliseconds(1)),
                                           AfterFailure(std::nullopt, "z", 7, kStart)};
  EXPECT_EQ(OutagesFromJson(ToJson(outages)), outages);
  for (const char* junk : {"7", "{}", "[7, null, {}]", R"([{"since": 1}])", R"([{"failures": -1, "since": "x"}])",
                           R"([{"failures": 1e300, "since": "2026-01-01T00:00:00Z", "unavailableUntil": "z"}])"}) {
    EXPECT_THAT(OutagesFromJson(kube::Json::parse(junk)), IsEmpty()) << junk;
  }
}

TEST(PoolOutagesTest, ManyJobsThatFailTogetherAreOneFailure) {
  PoolOutages outages;
  EXPECT_TRUE(outages.Fail(Pool(), "", {}, kStart));
  EXPECT_FALSE(outages.Fail(Pool(), "", {}, kStart + base::seconds(1)));
  EXPECT_EQ(outages.Of(Pool()).front().failures, 1);
  EXPECT_TRUE(outages.Fail(Pool(), "", {}, kStart + std::chrono::minutes(6)));
  EXPECT_EQ(outages.Of(Pool()).front().failures, 2);
}

TEST(PoolOutagesTest, APodThatGetsANodeEndsTheOutageOfItsZone) {
  PoolOutages outages;
  outages.Fail(Pool(), "z1", {{"old", "z1"}}, kStart);
  outages.Fail(Pool(), "z2", {{"old", "z1"}}, kStart);
  EXPECT_FALSE(outages.See(Pool(), {{"old", "z1"}}));
  EXPECT_TRUE(outages.See(Pool(), {{"old", "z1"}, {"new", "z2"}}));
  ASSERT_THAT(outages.Of(Pool()), SizeIs(1));
  EXPECT_EQ(outages.Of(Pool()).front().zone, "z1");
}

TEST(PoolOutagesTest, ANewProcessGoesOnWithThoseOfThePoolsStatus) {
  PoolOutages before;
  before.Fail(Pool(), "", {{"old", ""}}, kStart);
  const kube::Object stored = Pool(1, before.Of(Pool()));
  PoolOutages after;
  EXPECT_EQ(after.Of(stored), before.Of(Pool()));
  EXPECT_FALSE(after.See(stored, {{"old", ""}})) << "a pod that has had its node all along";
  EXPECT_TRUE(after.See(stored, {{"old", ""}, {"new", ""}}));
  EXPECT_THAT(after.Of(stored), IsEmpty()) << "this process knows better than the status";
}

TEST(PoolOutagesTest, AnEditOrANewPoolOfTheNameHasNone) {
  PoolOutages outages;
  outages.Fail(Pool(), "", {}, kStart);
  EXPECT_THAT(outages.Of(Pool(2)), IsEmpty());
  kube::Object other = Pool();
  other.mutable_json()["metadata"]["uid"] = "v";
  EXPECT_THAT(outages.Of(other), IsEmpty());
}

}  // namespace
}  // namespace medley::ops
