#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <filesystem>
#include <thread>

#include "common/base/file.h"
#include "common/base/testing/fake_clock.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "common/model/planning.h"
#include "scheduler-service/catalog/config.h"
#include "scheduler-service/catalog/price_file.h"

namespace medley::sched {
namespace {

using base::IsOk;
using base::StatusIs;
using testing::HasSubstr;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

absl::StatusOr<std::vector<CatalogEntry>> Parse(const std::string& text, const std::string& name = "p.yaml") {
  return ParsePriceFile(text, name, base::FakeClock().Now());
}

TEST(PriceFileTest, EntriesWithDefaults) {
  const auto entries = Parse(R"(entries:
- {resourceType: cpu, class: CPU, limit: 480, pricePerUnitHour: 0.04}
- {offering: {provider: aws, region: r, instanceType: p3.8xlarge, capacityType: spot, unitsPerInstance: 4}, pricePerInstanceHour: 8, available: false})");
  ASSERT_THAT(entries, IsOk());
  ASSERT_EQ(entries->size(), 2u);
  EXPECT_TRUE((*entries)[0].available);
  EXPECT_EQ((*entries)[0].source, "file:p.yaml");
  EXPECT_FALSE((*entries)[1].available);
  EXPECT_EQ((*entries)[1].UnitPrice(4), 2);
}

TEST(PriceFileTest, AnInvalidEntryRejectsTheWholeFile) {
  EXPECT_THAT(Parse("entries: [{resourceType: a, pricePerUnitHour: 1}, {resourceType: b, pricePerUnitHour: "
                    "0}]"),
              StatusIs(kInvalid, HasSubstr("entries[1].pricePerUnitHour: must be finite and greater than 0")));
  EXPECT_THAT(Parse("entries: [{resourceType: a, pricePerUnitHour: -1}]"), StatusIs(kInvalid));
  EXPECT_THAT(
      Parse("entries: [{resourceType: a, pricePerUnitHour: 1e308}]"),
      StatusIs(kInvalid, HasSubstr("entries[0].pricePerUnitHour: must be finite and greater than 0, at most 1e9")));
  EXPECT_THAT(Parse("InstanceType,Region,AvailabilityZone,Price,SpotPrice\nm5.large,r,,1e308,\n", "aws.csv"),
              StatusIs(kInvalid, HasSubstr("line 2: Price: '1e308' is not a price greater than 0 and at most 1e9")));
  EXPECT_THAT(Parse("entries: [{resourceType: a, pricePerUnitHour: .inf}]"), StatusIs(kInvalid));
  EXPECT_THAT(Parse("entries: [{pricePerUnitHour: 1}]"), StatusIs(kInvalid, HasSubstr("must have an offering or")));
  EXPECT_THAT(Parse("entries: [{resourceType: a, price: 1}]"), StatusIs(kInvalid, "entries[0].price: unknown field"));
  EXPECT_THAT(Parse("entries: [{resourceType: a, pricePerUnitHour: 1}, {resourceType: a, "
                    "pricePerUnitHour: 2}]"),
              StatusIs(kInvalid, HasSubstr("appears twice")));
  EXPECT_THAT(Parse("entries: []"), StatusIs(kInvalid, HasSubstr("must not be empty")));
}

// One price that is invalid does not hide the others.
TEST(PriceFileTest, ATableLeavesOutInvalidPrices) {
  const std::string bad[] = {"0.0", "-0.0", "-1", "5e-324", "1e-400", "9e-10", "1e308", "inf", "1.0x", "0,1\"\""};
  std::string text = "InstanceType,Region,AvailabilityZone,Price,SpotPrice\n";
  for (const std::string& price : bad) text += "m5.large,r,,\"" + price + "\",\n";
  text += "m5.xlarge,r,,0.192,0.0\nm5.2xlarge,r,,,nan\nm5.4xlarge,r,,1e-9,1e9\n";
  std::vector<absl::Status> left_out;
  const auto entries = ParsePriceFile(text, "aws.csv", base::FakeClock().Now(), &left_out);
  ASSERT_THAT(entries, IsOk());
  ASSERT_EQ(entries->size(), 3u);
  EXPECT_EQ((*entries)[0].price_per_instance_hour, 0.192);
  EXPECT_EQ((*entries)[1].price_per_instance_hour, 1e-9);
  ASSERT_EQ(left_out.size(), std::size(bad) + 1);
  EXPECT_THAT(left_out.front(), StatusIs(kInvalid, HasSubstr("line 2: Price: '0.0' is not a price")));
  EXPECT_THAT(left_out.back(), StatusIs(kInvalid, HasSubstr("line 12: SpotPrice: '0.0' is not a price")));
  EXPECT_THAT(Parse("entries: [{resourceType: a, pricePerUnitHour: 5e-324}]"), StatusIs(kInvalid));
}

TEST(PriceFileTest, SkyPilotTable) {
  const auto entries = Parse(
      "InstanceType,AcceleratorName,vCPUs,Price,SpotPrice,Region,AvailabilityZone,GpuInfo\r\n"
      "p3.2xlarge,V100,8,3.06,0.918,us-east-1,us-east-1a,\"{'Gpus': [1, 2]}\"\n"
      "m5.large,,2,0.096,,us-east-1,,\n",
      "aws.csv");
  ASSERT_THAT(entries, IsOk());
  ASSERT_EQ(entries->size(), 3u);
  EXPECT_EQ((*entries)[1].offering->KeyString(), "aws/us-east-1/us-east-1a/p3.2xlarge/spot");
  EXPECT_EQ((*entries)[1].price_per_instance_hour, 0.918);
  const auto shaped = Parse(
      "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region\n"
      "p3.2xlarge,V100,1.0,8.0,61,3.06,us-east-1\n"
      ",T4,1.0,,,0.35,us-central1\n",
      "x.csv");
  ASSERT_THAT(shaped, IsOk());
  ASSERT_EQ(shaped->size(), 1u);
  EXPECT_EQ((*shaped)[0].shape, (Shape{8, 61.0 * 1024 * 1024 * 1024, "v100", 1, 1}));
  EXPECT_THAT(Parse("InstanceType,Price\na,0\n", "x.csv"), StatusIs(kInvalid, HasSubstr("line 2: Price: '0'")));
  EXPECT_THAT(Parse("InstanceType,Price\na\n", "x.csv"), StatusIs(kInvalid, HasSubstr("line 2: 1 fields")));
}

TEST(CatalogStoreTest, RevisionGrowsOnlyOnChange) {
  CatalogStore store;
  base::FakeClock clock;
  CatalogEntry entry;
  entry.resource_type = "cpu";
  entry.price_per_unit_hour = 1;
  EXPECT_TRUE(store.Publish({entry}, clock.Now()));
  entry.observed_at = clock.Now();
  EXPECT_FALSE(store.Publish({entry}, clock.Now()));
  EXPECT_EQ(store.WaitNewer(1, {}, base::milliseconds(1)), nullptr);
  entry.price_per_unit_hour = 2;
  std::jthread publisher([&] { store.Publish({entry}, clock.Now()); });
  const CatalogSnapshot newer = store.WaitNewer(1, {}, base::seconds(60));
  ASSERT_NE(newer, nullptr);
  EXPECT_EQ(newer->revision, 2);
}

TEST(ResolvePricesTest, OfferingThenName) {
  Catalog catalog;
  catalog.entries = *Parse(R"(entries:
- {resourceType: cpu, class: CPU, limit: 9, pricePerUnitHour: 0.04}
- {resourceType: unavailable, class: GPU, limit: 9, pricePerUnitHour: 1, available: false}
- {offering: {provider: aws, instanceType: p3.8xlarge}, pricePerInstanceHour: 8})");
  model::PlanRequest request;
  request.resources = {{"cpu"}, {"unavailable"}, {"v100"}, {"mine", model::ResourceClass::kCpu, 7}};
  request.resources[2].offering = model::Offering{"aws", "", "", "p3.8xlarge", "", 4};
  ResolvePrices(catalog, request);
  EXPECT_EQ(request.resources[0].price_per_unit_hour, 0.04);
  EXPECT_EQ(request.resources[1].price_per_unit_hour, 0);
  EXPECT_EQ(request.resources[2].price_per_unit_hour, 2);
  EXPECT_EQ(request.resources[3].price_per_unit_hour, 7);
  model::PlanRequest empty;
  ResolvePrices(catalog, empty);
  ASSERT_EQ(empty.resources.size(), 1u);
  EXPECT_EQ(empty.resources[0].name, "cpu");
}

TEST(FileFeedTest, KeepsTheLastGoodPrices) {
  const std::filesystem::path folder = *base::MakeTempDir("medley-prices-test");
  const std::filesystem::path path = folder / "prices.yaml";
  CatalogStore store;
  metrics::Registry metrics;
  base::FakeClock clock;
  CatalogConfig config = OneFileConfig(path, base::seconds(5));
  Poller poller(std::move(config.poller), std::move(config.feeds), store, metrics, clock);
  const auto later = [&] {
    clock.Advance(base::seconds(6));  // more than a period with jitter
    poller.Step({});
    return store.Get();
  };
  EXPECT_EQ(later()->revision, 0);
  EXPECT_THAT(metrics.Text(), HasSubstr("medley_price_fetch_total{result=\"not_found\",source=\"file\"} 1"));
  ASSERT_THAT(base::WriteFileAtomic(path, "entries: [{resourceType: a, pricePerUnitHour: 1}]"), IsOk());
  EXPECT_EQ(later()->revision, 1);
  ASSERT_THAT(base::WriteFileAtomic(path, "entries: [{resourceType: a, pricePerUnitHour: 0}]"), IsOk());
  later();
  EXPECT_EQ(later()->entries[0].price_per_unit_hour, 1);  // the same bad content counts once
  EXPECT_THAT(metrics.Text(), HasSubstr("medley_price_rejected_total{reason=\"malformed\",source=\"file\"} 1"));
  // Static prices are published at once: ten times the price, a change of 1 %, and a removed entry.
  for (const double price : {10.0, 10.1, 3.0}) {
    ASSERT_THAT(base::WriteFileAtomic(path, fmt::format("entries: [{{resourceType: a, pricePerUnitHour: {}}}]", price)),
                IsOk());
    EXPECT_EQ(later()->entries[0].price_per_unit_hour, price);
  }
  ASSERT_THAT(base::WriteFileAtomic(path, "entries: [{resourceType: b, pricePerUnitHour: 3}]"), IsOk());
  ASSERT_EQ(later()->entries.size(), 1u);
  EXPECT_EQ(store.Get()->entries[0].resource_type, "b");
  EXPECT_EQ(store.Get()->revision, 5);
  base::RemoveTempDir(folder);
}

}  // namespace
}  // namespace medley::sched
