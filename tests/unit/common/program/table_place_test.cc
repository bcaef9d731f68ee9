#include "common/program/table_place.h"

#include <gtest/gtest.h>

namespace medley::program {
namespace {

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

}  // namespace
}  // namespace medley::program
