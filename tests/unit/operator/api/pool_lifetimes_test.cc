#include "operator/api/pool_lifetimes.h"

#include <gtest/gtest.h>

namespace medley::ops {
namespace {

constexpr base::WallTime kFirstLook{base::seconds(1'700'000'000)};

base::WallTime HoursAfter(double hours) {
  return kFirstLook + std::chrono::duration_cast<base::WallTime::duration>(std::chrono::duration<double>(hours * 3600));
}

TEST(PoolLifetimesTest, TheRateIsThatOfTheLossesSeenBesideAPrior) {
  PoolLifetimes seen;
  EXPECT_DOUBLE_EQ(seen.LossesPerHour(), 1 / kPriorLifeHours);
  seen.NoteUnits(0, kFirstLook);
  for (int hour = 1; hour <= 10; ++hour) seen.NoteUnits(100, HoursAfter(hour));
  EXPECT_NEAR(seen.unit_hours, 1000, 25);  // the older hours weigh a little less
  EXPECT_LT(seen.LossesPerHour(), 0.001);
  seen.NoteLosses(100);
  EXPECT_NEAR(seen.LossesPerHour(), 0.1, 0.005);
}

TEST(PoolLifetimesTest, WhatWasSeenCountsHalfAfterAWeek) {
  PoolLifetimes seen{100, 10, 0, kFirstLook};
  seen.NoteUnits(0, HoursAfter(kLifetimeHalfLifeHours));
  EXPECT_NEAR(seen.unit_hours, 50, 1e-9);
  EXPECT_NEAR(seen.losses, 5, 1e-9);
}

TEST(PoolLifetimesTest, HoursInWhichNobodyLookedAndClocksThatAreSetBackCountNothing) {
  PoolLifetimes seen;
  seen.NoteUnits(5, kFirstLook);
  EXPECT_EQ(seen.unit_hours, 0);
  seen.NoteUnits(5, HoursAfter(24));
  EXPECT_EQ(seen.unit_hours, 5 * kMostHoursBetweenLooks);
  seen.NoteUnits(5, HoursAfter(1));
  EXPECT_EQ(seen.unit_hours, 5 * kMostHoursBetweenLooks);
  EXPECT_EQ(seen.updated, HoursAfter(1));
}

TEST(PoolLifetimesTest, TheLostShareIsRoundedAndBounded) {
  PoolLifetimes seen{76, 9, 0, kFirstLook};  // 0.1 losses an hour
  EXPECT_EQ(LostShare(seen, 0), 0);
  EXPECT_EQ(LostShare(seen, 10), 0) << "0.00028 is too little to change a question";
  EXPECT_DOUBLE_EQ(LostShare(seen, 360), 0.01);
  seen.losses = 1e9;
  EXPECT_EQ(LostShare(seen, 1e9), kMostLost);
}

TEST(PoolLifetimesTest, IsWrittenForALossATimeOrAnotherStart) {
  const PoolLifetimes stored{10, 1, 100, kFirstLook};
  EXPECT_FALSE(stored.DiffersFrom(stored));
  PoolLifetimes now = stored;
  now.NoteUnits(1, HoursAfter(0.1));
  EXPECT_FALSE(now.DiffersFrom(stored));
  now.NoteUnits(1, HoursAfter(0.3));
  EXPECT_TRUE(now.DiffersFrom(stored));
  now = stored;
  now.NoteLosses(1);
  EXPECT_TRUE(now.DiffersFrom(stored));
  now = stored;
  now.NoteStart(110);
  EXPECT_FALSE(now.DiffersFrom(stored));
  now.NoteStart(600);
  EXPECT_TRUE(now.DiffersFrom(stored));
}

TEST(PoolLifetimesTest, SurvivesJson) {
  const PoolLifetimes seen{12.25, 3.5, 95, kFirstLook};
  EXPECT_EQ(PoolLifetimes::FromJson(seen.ToJson()), seen);
  for (const char* text : {"null", "[]", "3", "{}", R"({"unitHours": "5"})", R"({"updated": "yesterday"})",
                           R"({"updated": 3, "unitHours": "1"})"}) {
    EXPECT_EQ(PoolLifetimes::FromJson(kube::Json::parse(text)), PoolLifetimes()) << text;
  }
  const PoolLifetimes read = PoolLifetimes::FromJson(
      {{"updated", "2026-01-01T00:00:00Z"}, {"unitHours", "-5"}, {"losses", "1e300"}, {"startSeconds", "1e9"}});
  EXPECT_EQ(read.unit_hours, 0);
  EXPECT_EQ(read.losses, 0);
  EXPECT_EQ(read.start_seconds, 0);
}

}  // namespace
}  // namespace medley::ops
