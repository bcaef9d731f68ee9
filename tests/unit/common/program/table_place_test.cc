#include "common/program/table_place.h"

#include <gtest/gtest.h>

namespace medley::program {
namespace {

using model::TablePlace;

TEST(TablePlaceTest, TheFirstThatFitsIsChosen) {
  constexpr double kTables = 1e9;
  EXPECT_EQ(PlaceTables(kTables, 1.3e9).place, TablePlace::kDevice);
  EXPECT_EQ(PlaceTables(kTables, 1.25e9).place, TablePlace::kDevice);
  const PlacedTables cached = PlaceTables(kTables, 1.2e9);
  EXPECT_EQ(cached.place, TablePlace::kCache);
  EXPECT_DOUBLE_EQ(cached.cache_bytes, 0.6e9);
  EXPECT_EQ(PlaceTables(kTables, 0.02e9).place, TablePlace::kCache);
  EXPECT_EQ(PlaceTables(kTables, 0.019e9).place, TablePlace::kHost) << "too few of the rows would be there";
  EXPECT_EQ(PlaceTables(kTables, 0).place, TablePlace::kHost);
}

TEST(TablePlaceTest, APlanIsObeyedWhereItsTablesFit) {
  constexpr double kTables = 1e9;
  const model::Tables whole{.place = TablePlace::kDevice},
      cache{.place = TablePlace::kCache, .cache_bytes = 100'000'000};
  EXPECT_EQ(PlaceTables(whole, kTables, 1.06e9).place, TablePlace::kDevice) << "the planner has left the rest";
  EXPECT_EQ(PlaceTables(whole, kTables, 1.04e9).place, TablePlace::kCache) << "as without a plan";
  EXPECT_EQ(PlaceTables(whole, kTables, 0.01e9).place, TablePlace::kHost);
  EXPECT_EQ(PlaceTables(cache, kTables, 5e9).place, TablePlace::kCache) << "the plan may know why";
  EXPECT_DOUBLE_EQ(PlaceTables(cache, kTables, 5e9).cache_bytes, 1e8);
  EXPECT_DOUBLE_EQ(PlaceTables(cache, kTables, 0.1e9).cache_bytes, 0.5e8) << "less than it says";
  EXPECT_EQ(PlaceTables({.place = TablePlace::kHost}, kTables, 5e9).place, TablePlace::kHost);
  EXPECT_EQ(PlaceTables(model::Tables(), kTables, 5e9).place, TablePlace::kDevice);
}

// A planner that is asked again with less than the room of its answer gives another one.
TEST(TablePlaceTest, LessRoomThanNeededHasAnotherAnswer) {
  constexpr double kTables = 1e9;
  for (const double room : {2e9, 1.2e9, 0.3e9}) {
    const PlacedTables placed = PlaceTables(kTables, room);
    const model::Tables tables{.place = placed.place, .cache_bytes = static_cast<int64_t>(placed.cache_bytes)};
    const double less = RoomOf(tables, kTables) * (1 - 1e-6);
    EXPECT_LT(less, room);
    const PlacedTables next = PlaceTables(kTables, less);
    EXPECT_TRUE(next.place != placed.place || next.cache_bytes < 0.6 * placed.cache_bytes) << room;
  }
}

}  // namespace
}  // namespace medley::program
