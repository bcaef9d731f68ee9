// We know of no recorded responses under a free licence. So these tests build the bodies in the documented format, with
// the values of tests/data/prices/feeds/azure_*.csv.
#include "scheduler-service/feeds/azure_retail_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/testing/status_matchers.h"
#include "tests/unit/scheduler-service/feeds/azure_pages.h"
#include "tests/unit/scheduler-service/feeds/test_data.h"

namespace medley::sched {
namespace {

using absl::StatusCode;
using base::StatusIs;
using testing::HasSubstr;
using testing::SizeIs;

const base::WallTime kNow = *base::ParseTime("2026-06-20T00:00:00Z");

TEST(AzurePageTest, OnDemandAndSpotOfTheRecordedPrices) {
  const auto rows = PriceRows("azure_on_demand.csv");
  const auto spot = PriceRows("azure_spot.csv");
  std::vector<AzureItem> items;
  for (const auto& row : rows) items.push_back({.size = row[0], .region = row[1], .price = row[2]});
  for (const auto& row : spot) items.push_back({.size = row[2], .region = row[1], .price = row[3], .suffix = " Spot"});
  const auto page = ParseAzurePage(AzureBody(items, "https://prices.azure.com/next"), {}, kNow);
  ASSERT_THAT(page, base::IsOk());
  EXPECT_EQ(page->next, "https://prices.azure.com/next");
  ASSERT_THAT(page->prices.entries, SizeIs(rows.size() + spot.size()));
  EXPECT_EQ(page->prices.skipped, 0);
  std::map<std::string, double> by_key;
  for (const CatalogEntry& entry : page->prices.entries) by_key[KeyOf(entry)] = entry.price_per_instance_hour;
  EXPECT_DOUBLE_EQ(by_key.at("azure/eastus//Standard_D4s_v5/on-demand"), 0.192);
  EXPECT_DOUBLE_EQ(by_key.at("azure/eastus//Standard_NC6s_v3/spot"), 0.60313);
  EXPECT_DOUBLE_EQ(by_key.at("azure/westeurope//Standard_NC40ads_H100_v5/on-demand"), 9.08);
}

TEST(AzurePageTest, SkippedItems) {
  const AzureItem plain{.size = "Standard_NC6s_v3", .region = "eastus", .price = "3.06"};
  std::vector<AzureItem> items(10, plain);
  items[0].product_suffix = " Windows";
  items[1].suffix = " Low Priority";
  items[2].product_suffix = " Dedicated Host";
  items[3].type = "Reservation";
  items[4].price = "0.0";
  items[5].unit = "1/Month";
  items[6].size = "";
  items[7].since = "2026-08-01T00:00:00Z";  // announced, not in effect yet
  items[8].region = "westus";
  const auto page = ParseAzurePage(AzureBody(items, ""), {{"eastus"}, {"Standard_NC*"}}, kNow);
  ASSERT_THAT(page, base::IsOk());
  EXPECT_THAT(page->prices.entries, SizeIs(1));
  EXPECT_EQ(page->prices.skipped, 9);
  EXPECT_TRUE(page->next.empty());
  EXPECT_EQ(page->prices.entries[0].effective_at, *base::ParseTime("2021-11-01T00:00:00Z"));
}

TEST(AzurePageTest, ErrorsNameItemAndField) {
  const auto refused = [](const std::string& body, const std::string& why) {
    EXPECT_THAT(ParseAzurePage(body, {}, kNow), StatusIs(StatusCode::kInvalidArgument, HasSubstr(why))) << body;
  };
  const AzureItem plain{.size = "Standard_NC6s_v3", .region = "eastus", .price = "3.06"};
  AzureItem bad = plain;
  bad.price = "-3.06";
  refused(AzureBody({plain, bad}, ""), "Items[1].retailPrice: -3.06 is not a price");
  bad.price = "\"3.06\"";
  refused(AzureBody({plain, bad}, ""), "Items[1].retailPrice: must be a number, is \"3.06\"");
  bad = plain;
  bad.since = "soon";
  refused(AzureBody({bad}, ""), "Items[0].effectiveStartDate: 'soon' is not a time");
  refused(R"({"Items":[{"skuName":"x"}]})", "Items[0].productName: is required");
  refused(R"({"Items":null})", "Items: is required");
  refused(R"({"error":{"code":"BadRequest"}})", "Items: is required");
  const std::string whole = AzureBody({plain}, "");
  refused(whole.substr(0, whole.size() / 2), "broken JSON at line 1, column");
}

TEST(AzurePageTest, AnotherCurrencyIsReported) {
  AzureItem item{.size = "Standard_NC6s_v3", .region = "eastus", .price = "3.06"};
  item.currency = "EUR";
  const auto page = ParseAzurePage(AzureBody({item}, ""), {}, kNow);
  ASSERT_THAT(page, base::IsOk());
  EXPECT_EQ(page->prices.entries.at(0).currency, "EUR");  // rejected later by the acceptance rules of catalog/
}

}  // namespace
}  // namespace medley::sched
