// Reading recorded capacity: what is understood, and what is refused with which words.
#include "cli/traces/trace.h"

#include <cmath>
#include <filesystem>
#include <fstream>

#include "common/base/file.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"

namespace medley::cli::traces {
namespace {

using base::StatusIs;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kTwoZones[] =
    "time,a1:units,b1:available,a1:usdPerHour,b1:usdPerHour\n"
    "2025-10-04T00:00:00Z,2,0,1.5,2\n"
    "2025-10-04T00:10:00Z,3,1,1.25,2\n"
    "2025-10-04T00:20:00Z,0,1,1,2\n";

absl::StatusOr<Trace> Parse(std::string_view text, std::string_view prices = "", double gap = 0) {
  return ParseTrace(text, "t.csv", prices, "t-prices.csv", {.longest_gap_seconds = gap});
}

TEST(TraceTest, ARecordWithPricesIsRead) {
  const auto trace = Parse(kTwoZones);
  ASSERT_THAT(trace, base::IsOk());
  EXPECT_THAT(trace->zones, ElementsAre("a1", "b1"));
  EXPECT_THAT(trace->units[0], ElementsAre(2, 3, 0));
  EXPECT_THAT(trace->spot_usd[0], ElementsAre(1.5, 1.25, 1));
  EXPECT_EQ(trace->tick_seconds, 600);
  EXPECT_FALSE(std::isfinite(trace->on_demand_usd[0]));
}

TEST(TraceTest, PricesOfRegionsAndZonesHoldForTheWholeRecord) {
  const auto trace = Parse("time,us-east1-a,us-east1-b\n2025-10-04 00:00:00,1,1\n2025-10-04 00:01:00,1,1\n",
                           "region,spotUsdPerHour,onDemandUsdPerHour\nus-east1,2,5\nelsewhere,1,1\n");
  ASSERT_THAT(trace, base::IsOk());
  EXPECT_THAT(trace->spot_usd[1], ElementsAre(2, 2));
  EXPECT_EQ(trace->on_demand_usd[0], 5);
}

TEST(TraceTest, AHoleIsFilledWhereThatIsAllowed) {
  const std::string text = std::string(kTwoZones) + "2025-10-04T01:00:00Z,5,1,1,2\n";
  EXPECT_THAT(Parse(text), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("the record has a hole")));
  const auto trace = Parse(text, "", 1800);
  ASSERT_THAT(trace, base::IsOk());
  EXPECT_THAT(trace->units[0], ElementsAre(2, 3, 0, 0, 0, 0, 5));
  EXPECT_THAT(trace->held_ticks, ElementsAre(std::pair<size_t, size_t>(3, 6)));
}

struct Refused {
  const char* name;
  std::string text;
  const char* message;
};

class TraceRefusedTest : public testing::TestWithParam<Refused> {};

TEST_P(TraceRefusedTest, TheMessageSaysWhatIsWrong) {
  EXPECT_THAT(Parse(GetParam().text), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(GetParam().message)));
}

std::string Rows(const std::string& more) { return std::string("time,z,z:usdPerHour\n") + more; }

INSTANTIATE_TEST_SUITE_P(
    All, TraceRefusedTest,
    testing::Values(
        Refused{"Empty", "", "t.csv: the file is empty"},
        Refused{"OnlyAHeader", Rows(""), "t.csv: fewer than two records"},
        Refused{"NotUtf8", Rows("2025-10-04T00:00:00Z,1,\xff\n"), "t.csv: line 2 is not UTF-8"},
        Refused{"NoTimeColumn", "when,z\n", "the first column must be 'time'"},
        Refused{"TheSameColumnTwice", "time,z,z\n", "two columns are named 'z'"},
        Refused{"AColumnWithoutAName", "time,,z\n", "a column has no name"},
        Refused{"AnUnknownKindOfColumn", "time,z:weight\n", "column 'z:weight' is neither"},
        Refused{"APriceWithoutUnits", "time,z:usdPerHour\n2025-10-04T00:00:00Z,1\n",
                "zone 'z' has a price, but no column"},
        Refused{"NoPrice", "time,z\n2025-10-04T00:00:00Z,1\n2025-10-04T00:10:00Z,1\n", "zone 'z' has no price"},
        Refused{"TooFewColumns", Rows("2025-10-04T00:00:00Z,1\n"),
                "t.csv: line 2: 2 columns, but the first line names 3"},
        Refused{"NoTime", Rows("yesterday,1,1\n"), "line 2: 'yesterday' is not a time"},
        Refused{"TimesOutOfOrder", Rows("2025-10-04T00:10:00Z,1,1\n2025-10-04T00:00:00Z,1,1\n"),
                "line 3: the time 2025-10-04T00:00:00Z is not after"},
        Refused{"TimesTooClose", Rows("2025-10-04T00:00:00Z,1,1\n2025-10-04T00:10:00Z,1,1\n2025-10-04T00:11:00Z,1,1\n"),
                "60 s after the line before, but the record has a line every 600 s"},
        Refused{"NegativeUnits", Rows("2025-10-04T00:00:00Z,-1,1\n"),
                "line 2: z is '-1', which is not a number from 0"},
        Refused{"NoNumber", Rows("2025-10-04T00:00:00Z,1,nan\n"), "z:usdPerHour is 'nan'"}),
    [](const auto& each) { return each.param.name; });

TEST(TraceTest, ATooWideRecordIsRefused) {
  std::string header = "time";
  for (int i = 0; i < 3000; ++i) header += ",z" + std::to_string(i);
  EXPECT_THAT(Parse(header + "\n"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("3001 columns, but at most 2000")));
}

TEST(TraceFileTest, MissingFilesPipesAndFoldersAreRefused) {
  const auto folder = base::MakeTempDir("traces");
  ASSERT_THAT(folder, base::IsOk());
  EXPECT_THAT(ReadTrace(*folder, "none"), StatusIs(absl::StatusCode::kNotFound, HasSubstr("none.csv: no such file")));
  std::filesystem::create_directory(*folder / "folder.csv");
  EXPECT_THAT(ReadTrace(*folder, "folder"), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ReadEgress(*folder / "absent"), StatusIs(absl::StatusCode::kNotFound));
  std::ofstream(*folder / "t.csv") << kTwoZones;
  EXPECT_THAT(ReadTrace(*folder, "t"), base::IsOk());
  base::RemoveTempDir(*folder);
}

TEST(EgressTest, OnlyBetweenRegionsAnythingIsPaid) {
  const auto folder = base::MakeTempDir("traces");
  ASSERT_THAT(folder, base::IsOk());
  std::ofstream(*folder / "x-egress.csv") << "from_region,to_region,price_usd_per_gb\r\nus-east-1,us-east-2,0.01\r\n";
  const auto egress = ReadEgress(*folder);
  ASSERT_THAT(egress, base::IsOk());
  EXPECT_EQ(egress->UsdPerGb("us-east-1a", "us-east-2b"), 0.01);
  EXPECT_EQ(egress->UsdPerGb("us-east-2b", "us-east-1a"), 0.02);
  EXPECT_EQ(egress->UsdPerGb("us-east-1a", "us-east-1c"), 0);
  std::ofstream(*folder / "y-egress.csv") << "from_region,to_region,price_usd_per_gb\n";
  EXPECT_THAT(ReadEgress(*folder), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("name one egress.csv")));
  base::RemoveTempDir(*folder);
}

TEST(RegionTest, TheRegionOfAZoneLacksItsLetter) {
  EXPECT_EQ(RegionOf("us-east-1a"), "us-east-1");
  EXPECT_EQ(RegionOf("us-central1-a"), "us-central1");
  EXPECT_EQ(RegionOf("rack"), "rack");
  EXPECT_EQ(RegionOf(""), "");
}

}  // namespace
}  // namespace medley::cli::traces
