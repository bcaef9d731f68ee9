// How long units live, from what was seen of a zone.
#include "operator/spot/zone_record.h"

#include <gtest/gtest.h>

#include <cmath>

namespace medley::ops::spot {
namespace {

TEST(ZoneRecordTest, AZoneOfWhichNothingWasSeenHasThePrior) {
  const std::vector<ZoneRates> rates = RatesOf(std::vector<ZoneRecord>(1), {.life_hours = 4, .away_hours = 1});
  EXPECT_DOUBLE_EQ(rates[0].LifeHours(), 4);
  EXPECT_DOUBLE_EQ(rates[0].returns_per_hour, 1);
  EXPECT_DOUBLE_EQ(rates[0].ShareUp(), 0.8);
}

TEST(ZoneRecordTest, AChangeBetweenTwoSightingsIsOneLossOrOneReturn) {
  ZoneRecord record;
  NoteSighting(record, 0, true);
  NoteSighting(record, 0.5, true);
  NoteSighting(record, 1, false);
  EXPECT_NEAR(record.losses, 1, 0.02);
  EXPECT_NEAR(record.up_hours, 0.75, 0.02);
  EXPECT_NEAR(record.down_hours, 0.25, 0.02);
  NoteSighting(record, 1.5, true);
  EXPECT_NEAR(record.returns, 1, 0.02);
}

TEST(ZoneRecordTest, NothingIsKnownOfTheTimeBetweenTwoSightingsFarApart) {
  ZoneRecord record;
  NoteSighting(record, 0, true);
  NoteSighting(record, kMostHoursBetween + 0.1, false);
  EXPECT_EQ(record.losses, 0);
  EXPECT_EQ(record.up_hours, 0);
  EXPECT_FALSE(record.last->up);
}

TEST(ZoneRecordTest, ManySightingsOutweighThePrior) {
  ZoneRecord record;
  for (int i = 0; i <= 2000; ++i) NoteSighting(record, i * 0.05, i % 20 != 0);  // lost once an hour, for 0.05 hours
  const ZoneRates rates = RatesOf(std::vector<ZoneRecord>{record})[0];
  EXPECT_NEAR(rates.LifeHours(), 0.95, 0.1);
  EXPECT_NEAR(rates.ShareUp(), 0.95, 0.02);
}

TEST(ZoneRecordTest, OlderSightingsCountLess) {
  ZoneRecord bad_then_good;
  for (int i = 0; i < 200; ++i) NoteSighting(bad_then_good, i * 0.25, i % 2 == 0);
  for (int i = 0; i < 2000; ++i) NoteSighting(bad_then_good, 50 + i * 0.25, true);
  EXPECT_GT(RatesOf(std::vector<ZoneRecord>{bad_then_good})[0].LifeHours(), 40);
}

TEST(ZoneRecordTest, WhatWasSeenFadesIntoTheShareOfTime) {
  ZoneRecord record;
  NoteSighting(record, 10, false);
  const ZoneRates rates{.losses_per_hour = 0.25, .returns_per_hour = 1};
  EXPECT_DOUBLE_EQ(ChanceUp(record, rates, 10), 0);
  EXPECT_NEAR(ChanceUp(record, rates, 11), 0.8 * (1 - std::exp(-1.25)), 1e-12);
  EXPECT_NEAR(ChanceUp(record, rates, 100), 0.8, 1e-9);
  EXPECT_DOUBLE_EQ(ChanceUp(record, rates, 5), 0);  // before the sighting
}

}  // namespace
}  // namespace medley::ops::spot
