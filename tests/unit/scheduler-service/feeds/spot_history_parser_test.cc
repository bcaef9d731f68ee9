#include "scheduler-service/feeds/spot_history_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "common/base/rng.h"
#include "common/base/testing/status_matchers.h"
#include "tests/unit/scheduler-service/feeds/spot_xml.h"
#include "tests/unit/scheduler-service/feeds/test_data.h"

namespace medley::sched {
namespace {

using absl::StatusCode;
using base::StatusIs;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::string Poll(int number) { return PriceData(fmt::format("us-east-1.p3.2xlarge.poll{}.json", number)); }

std::map<std::string, double> PriceByKey(const ParsedPrices& prices) {
  std::map<std::string, double> out;
  for (const CatalogEntry& entry : prices.entries) {
    EXPECT_TRUE(out.emplace(KeyOf(entry), entry.price_per_instance_hour).second) << KeyOf(entry);
  }
  return out;
}

TEST(SpotHistoryJsonTest, RecordedPolls) {
  const auto page = ParseSpotHistoryJson(Poll(4));
  ASSERT_THAT(page, base::IsOk());
  EXPECT_THAT(page->records, SizeIs(166));
  EXPECT_TRUE(page->next_token.empty());
  const auto prices = NewestSpotPrices(page->records, {}, {"Linux/UNIX"});
  ASSERT_THAT(prices, base::IsOk());
  EXPECT_EQ(PriceByKey(*prices), (std::map<std::string, double>{{"aws/us-east-1/us-east-1b/p3.2xlarge/spot", 1.0274},
                                                                {"aws/us-east-1/us-east-1c/p3.2xlarge/spot", 1.0201},
                                                                {"aws/us-east-1/us-east-1d/p3.2xlarge/spot", 1.1059},
                                                                {"aws/us-east-1/us-east-1f/p3.2xlarge/spot", 1.0318}}));
  EXPECT_EQ(prices->entries[0].effective_at, *base::ParseTime("2020-03-23T11:50:20Z"));
  EXPECT_EQ(prices->skipped, 162);
}

TEST(SpotHistoryJsonTest, EmptyRegionAndCappedPage) {
  const auto empty = ParseSpotHistoryJson(PriceData("eu-north-1.p3.2xlarge.poll0.json"));
  ASSERT_THAT(empty, base::IsOk());
  EXPECT_THAT(empty->records, IsEmpty());
  const auto capped = ParseSpotHistoryJson(PriceData("us-east-1.p2.xlarge.capped.json"));
  ASSERT_THAT(capped, base::IsOk());
  EXPECT_FALSE(capped->next_token.empty());
}

TEST(SpotHistoryTest, AnyOrderGivesTheSamePrices) {
  constexpr uint64_t kSeed = 7;
  SCOPED_TRACE(fmt::format("seed {}", kSeed));
  base::Rng rng(kSeed);
  const auto page = ParseSpotHistoryJson(Poll(2));
  ASSERT_THAT(page, base::IsOk());
  const auto sorted = NewestSpotPrices(page->records, {}, {});
  ASSERT_THAT(sorted, base::IsOk());
  std::vector<SpotRecord> records = page->records;
  for (int round = 0; round < 20; ++round) {
    for (size_t i = records.size() - 1; i > 0; --i) std::swap(records[i], records[rng.Below(i + 1)]);
    const auto shuffled = NewestSpotPrices(records, {}, {});
    ASSERT_THAT(shuffled, base::IsOk());
    EXPECT_EQ(shuffled->entries, sorted->entries);
  }
}

TEST(SpotHistoryTest, HeartbeatsRepeatThePrice) {
  const base::WallTime day = *base::ParseTime("2020-03-01T00:00:00Z");
  std::vector<SpotRecord> records;
  for (int days = 0; days < 3; ++days) {
    records.push_back({"us-east-1b", "p3.2xlarge", "Linux/UNIX", 1.0, day + std::chrono::hours(24 * days)});
  }
  const auto prices = NewestSpotPrices(records, {}, {});
  ASSERT_THAT(prices, base::IsOk());
  ASSERT_THAT(prices->entries, SizeIs(1));
  EXPECT_EQ(prices->entries[0].effective_at, day + std::chrono::hours(48));
}

TEST(SpotHistoryTest, OtherProductsAreSkippedAndTiesTakeTheMostExpensive) {
  const base::WallTime day = *base::ParseTime("2020-03-01T00:00:00Z");
  const std::vector<SpotRecord> records = {{"us-east-1b", "p3.2xlarge", "Linux/UNIX", 1.0, day},
                                           {"us-east-1b", "p3.2xlarge", "Linux/UNIX (Amazon VPC)", 1.1, day},
                                           {"us-east-1b", "p3.2xlarge", "Windows", 2.0, day}};
  const auto prices = NewestSpotPrices(records, {}, {"Linux/UNIX", "Linux/UNIX (Amazon VPC)"});
  ASSERT_THAT(prices, base::IsOk());
  EXPECT_EQ(PriceByKey(*prices), (std::map<std::string, double>{{"aws/us-east-1/us-east-1b/p3.2xlarge/spot", 1.1}}));
  EXPECT_THAT(NewestSpotPrices({{"nowhere", "p3.2xlarge", "", 1.0, day}}, {}, {}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("'nowhere' is not an AWS availability zone")));
}

TEST(SpotHistoryXmlTest, GivesTheSameRecordsAsJson) {
  for (int poll = 0; poll < 5; ++poll) {
    const auto json = ParseSpotHistoryJson(Poll(poll));
    ASSERT_THAT(json, base::IsOk());
    const auto xml = ParseSpotHistoryXml(SpotXml(json->records, "token/+="));
    ASSERT_THAT(xml, base::IsOk());
    EXPECT_EQ(xml->next_token, "token/+=");
    ASSERT_EQ(xml->records.size(), json->records.size());
    const auto from_json = NewestSpotPrices(json->records, {}, {});
    const auto from_xml = NewestSpotPrices(xml->records, {}, {});
    EXPECT_EQ(from_xml->entries, from_json->entries);
  }
}

TEST(SpotHistoryXmlTest, EmptySetAndEmptyToken) {
  const auto page = ParseSpotHistoryXml(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<DescribeSpotPriceHistoryResponse xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\">\n"
      "  "
      "<requestId>r</requestId><spotPriceHistorySet/><nextToken/>\n</"
      "DescribeSpotPriceHistoryResponse>");
  ASSERT_THAT(page, base::IsOk());
  EXPECT_THAT(page->records, IsEmpty());
  EXPECT_TRUE(page->next_token.empty());
}

TEST(SpotHistoryXmlTest, ErrorsNameTheRecord) {
  const auto refused = [](const std::string& body, const std::string& why) {
    const auto page = ParseSpotHistoryXml(body);
    EXPECT_FALSE(page.ok());
    EXPECT_THAT(base::Message(page.status()), HasSubstr(why));
  };
  const SpotRecord good{"us-east-1b", "p3.2xlarge", "Linux/UNIX", 1.0, *base::ParseTime("2020-03-01T00:00:00Z")};
  const std::string whole = SpotXml({good, good}, "");
  const auto with = [&](const std::string& what, const std::string& instead) {
    std::string text = whole;
    return text.replace(text.rfind(what), what.size(), instead);
  };
  refused(with("<spotPrice>1.000000<", "<spotPrice>1e308<"), "record 1: spot price: '1e308' is not a price");
  refused(with("<spotPrice>1.000000<", "<spotPrice>0<"), "record 1: spot price: '0' is not a price");
  refused(with("<spotPrice>1.000000</spotPrice>", ""), "record 1: spot price: ''");
  refused(with("2020-03-01T00:00:00.000Z", "yesterday"), "record 1: timestamp 'yesterday'");
  refused(with("<availabilityZone>us-east-1b</availabilityZone>", ""), "record 1: no availability zone");
  refused(whole.substr(0, whole.size() / 2), "not XML at line");
  refused("<html><body>sign in</body></html>", "<html>, want <DescribeSpotPriceHistoryResponse>");
  refused("<DescribeSpotPriceHistoryResponse/>", "no <spotPriceHistorySet>");
  // Recursive entities ("billion laughs").
  refused(
      "<!DOCTYPE x [<!ENTITY a \"aaaa\"><!ENTITY b "
      "\"&a;&a;\">]><DescribeSpotPriceHistoryResponse>&b;"
      "</DescribeSpotPriceHistoryResponse>",
      "document type declaration");
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "<DescribeSpotPriceHistoryResponse>";
  refused(deep, "nested deeper than 16");
  refused("<DescribeSpotPriceHistoryResponse>" + std::string(100'000, 'a') + "</DescribeSpotPriceHistoryResponse>",
          "bytes of text");
}

TEST(SpotHistoryJsonTest, ErrorsNameTheRecord) {
  EXPECT_THAT(ParseSpotHistoryJson(R"({"SpotPriceHistory":[{"AvailabilityZone":"us-east-1b"}]})"),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("SpotPriceHistory[0].InstanceType: is required")));
  EXPECT_THAT(ParseSpotHistoryJson(R"({"NextToken":""})"),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("SpotPriceHistory: is required")));
  const std::string whole = Poll(1);
  EXPECT_THAT(ParseSpotHistoryJson(whole.substr(0, 5000)),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("broken JSON at line")));
}

}  // namespace
}  // namespace medley::sched
