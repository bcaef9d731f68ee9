#include "scheduler-service/feeds/aws_spot_feed_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "common/base/testing/status_matchers.h"
#include "tests/unit/scheduler-service/feeds/test_data.h"

namespace medley::sched {
namespace {

using absl::StatusCode;
using base::StatusIs;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

std::multimap<std::string, double> ByKey(const ParsedPrices& prices) {
  std::multimap<std::string, double> out;
  for (const CatalogEntry& entry : prices.entries) out.emplace(KeyOf(entry), entry.price_per_instance_hour);
  return out;
}

std::string Replaced(std::string text, const std::string& what, const std::string& with) {
  const size_t at = text.find(what);
  MEDLEY_CHECK(at != std::string::npos, what);
  return text.replace(at, what.size(), with);
}

TEST(AwsSpotFeedTest, RecordedFeedOf2026) {
  const auto prices = ParseAwsSpotFeed(PriceData("spot_feed_2026-08.json"), {});
  ASSERT_THAT(prices, base::IsOk());
  const auto by_key = ByKey(*prices);
  EXPECT_DOUBLE_EQ(by_key.find("aws/us-east-1//p3.2xlarge/spot")->second, 0.5509);
  EXPECT_DOUBLE_EQ(by_key.find("aws/af-south-1//t3.nano/spot")->second, 9.0e-4);  // "9.0E-4"
  EXPECT_EQ(by_key.count("aws/us-east-1//g6.12xlarge/spot"), 2u);                 // listed twice, so both are returned
  // A local zone is a zone of its region.
  const std::string local = "aws/us-east-1/us-east-1-atl-1/";
  EXPECT_THAT(by_key.lower_bound(local)->first, StartsWith(local));
  EXPECT_EQ(prices->entries.size() + static_cast<size_t>(prices->skipped), 139u);
}

TEST(AwsSpotFeedTest, OldNamesOfRegions) {
  const auto prices = ParseAwsSpotFeed(PriceData("spot_feed_2021.json"), {});
  ASSERT_THAT(prices, base::IsOk());
  const auto by_key = ByKey(*prices);
  EXPECT_EQ(by_key.count("aws/us-east-1//m5.large/spot"), 1u);
  EXPECT_DOUBLE_EQ(by_key.find("aws/eu-west-1//p4d.24xlarge/spot")->second, 10.619);
  for (const CatalogEntry& entry : prices->entries) EXPECT_NE(entry.offering->region, "us-east");
}

TEST(AwsSpotFeedTest, JavaScriptForm) {
  const std::string json = PriceData("spot_feed_2021.json");
  const auto plain = ParseAwsSpotFeed(json, {});
  for (const std::string& body :
       {"callback(" + json + ");", "  callback (\n" + json + "\n)  ;\n", "callback(" + json + ")"}) {
    const auto wrapped = ParseAwsSpotFeed(body, {});
    ASSERT_THAT(wrapped, base::IsOk());
    EXPECT_EQ(wrapped->entries, plain->entries);
  }
  EXPECT_THAT(ParseAwsSpotFeed("callback(" + json, {}), StatusIs(StatusCode::kInvalidArgument, HasSubstr("truncated")));
}

TEST(AwsSpotFeedTest, NotAvailableIsSkipped) {
  const std::string text = Replaced(PriceData("spot_feed_2021.json"), "\"0.0382\"", "\"N/A*\"");
  const auto prices = ParseAwsSpotFeed(text, {});
  ASSERT_THAT(prices, base::IsOk());
  EXPECT_EQ(prices->skipped, 1);
  EXPECT_EQ(ByKey(*prices).count("aws/us-east-1//m5.large/spot"), 0u);
}

TEST(AwsSpotFeedTest, Selection) {
  const auto prices = ParseAwsSpotFeed(PriceData("spot_feed_2026-08.json"), {{"us-east-1"}, {"p3.*", "p4d.24xlarge"}});
  ASSERT_THAT(prices, base::IsOk());
  ASSERT_FALSE(prices->entries.empty());
  for (const CatalogEntry& entry : prices->entries) {
    EXPECT_EQ(entry.offering->region, "us-east-1");
    EXPECT_THAT(entry.offering->instance_type, StartsWith("p"));
  }
}

TEST(AwsSpotFeedTest, ErrorsNameRegionAndSize) {
  const std::string text = PriceData("spot_feed_2021.json");
  const auto refused = [](const std::string& body, const std::string& why) {
    EXPECT_THAT(ParseAwsSpotFeed(body, {}), StatusIs(StatusCode::kInvalidArgument, HasSubstr(why)));
  };
  refused(Replaced(text, "\"0.0382\"", "\"0\""), "us-east-1/m5.large: '0' is not a price greater than 0");
  refused(Replaced(text, "\"0.0382\"", "\"0.0x\""), "us-east-1/m5.large: '0.0x'");
  refused(Replaced(text, "\"0.0382\"", "\"inf\""), "us-east-1/m5.large: 'inf'");
  refused(Replaced(text, "\"USD\":\"0.0382\"", "\"EUR\":\"0.0382\""), "valueColumns[0].prices.USD: is required");
  refused(Replaced(text, "perhr", "permonth"), "config.rate: must be perhr, is 'permonth'");
  refused(Replaced(text, "\"us-east\"", "\"moon\""), "'moon' is not an AWS region");
  refused(text.substr(0, text.size() - 100), "broken JSON at line 1, column");
  refused(R"({"config":{"rate":"perhr","regions":[]}})", "config.regions: must not be empty");
}

}  // namespace
}  // namespace medley::sched
