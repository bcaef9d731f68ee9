// From HTTP responses to planners: configured feeds over loopback, and the catalog's poller with a fake clock.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "common/base/testing/fake_clock.h"
#include "common/base/testing/status_matchers.h"
#include "scheduler-service/catalog/config.h"
#include "scheduler-service/catalog/poller.h"
#include "scheduler-service/feeds/factory.h"
#include "tests/integration/scheduler/replay_server.h"
#include "tests/unit/scheduler-service/feeds/azure_pages.h"
#include "tests/unit/scheduler-service/feeds/test_data.h"

namespace medley::sched {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

class PricePollerTest : public testing::Test {
 protected:
  PricePollerTest()
      : server_([this](const ReplayRequest&) {
          base::MutexLock lock(mutex_);
          return reply_;
        }) {}

  void Configure(const std::string& feed) {
    auto config = ParseCatalogConfig("feeds:\n- name: it\n  endpoint: " + server_.url() + "/\n" + feed,
                                     HttpFeedFactories(clock_));
    MEDLEY_CHECK(config.ok(), base::ToString(config.status()));
    poller_.emplace(config->poller, std::move(config->feeds), store_, metrics_, clock_);
  }
  // Lets the source return `reply` from now on, advances the clock and runs the poller.
  void Step(ReplayReply reply, base::nanoseconds later) {
    {
      base::MutexLock lock(mutex_);
      reply_ = std::move(reply);
    }
    clock_.Advance(later);
    poller_->Step({});
  }
  std::map<std::string, CatalogEntry> Published() const {
    std::map<std::string, CatalogEntry> out;
    for (const CatalogEntry& entry : store_.Get()->entries) out.emplace(KeyOf(entry), entry);
    return out;
  }

  base::FakeClock clock_{*base::ParseTime("2026-08-01T00:00:00Z")};
  base::Mutex mutex_;
  ReplayReply reply_ ABSL_GUARDED_BY(mutex_);
  ReplayServer server_;
  CatalogStore store_;
  metrics::Registry metrics_;
  std::optional<Poller> poller_;
};

TEST_F(PricePollerTest, AwsPollsReachPlannersInTheOrderOfTheirTimes) {
  Configure("  type: aws-spot-history\n  documents: ['" + server_.url() + "/poll.json']\n");
  const auto poll = [](int number) {
    return ReplayReply{.body = PriceData(fmt::format("us-east-1.p3.2xlarge.poll{}.json", number))};
  };
  const std::string key = "aws/us-east-1/us-east-1b/p3.2xlarge/spot";
  const std::vector<double> expected = {1.0671, 1.1409, 1.1891, 1.0495, 1.0274};
  for (int number = 0; number < 5; ++number) {
    Step(poll(number), std::chrono::hours(24));
    ASSERT_THAT(Published(), SizeIs(4));
    EXPECT_DOUBLE_EQ(Published().at(key).price_per_instance_hour, expected[static_cast<size_t>(number)]);
  }
  const int64_t revision = store_.Get()->revision;
  EXPECT_EQ(revision, 5);
  // An older response, for example from an HTTP cache, changes nothing.
  Step(poll(2), std::chrono::hours(1));
  EXPECT_DOUBLE_EQ(Published().at(key).price_per_instance_hour, 1.0274);
  EXPECT_EQ(store_.Get()->revision, revision);
  // A complete but empty response for a region is rejected, and the prices stay.
  Step({.body = PriceData("eu-north-1.p3.2xlarge.poll0.json")}, std::chrono::hours(1));
  EXPECT_THAT(Published(), SizeIs(4));
  EXPECT_THAT(metrics_.Text(), HasSubstr("reason=\"shrunk\""));
}

TEST_F(PricePollerTest, MissingSkusAndOutagesKeepTheLastGoodPrices) {
  std::vector<AzureItem> items;
  for (const auto& row : PriceRows("azure_on_demand.csv")) {
    if (row[1] == "eastus") items.push_back({.size = row[0], .region = row[1], .price = row[2]});
  }
  const std::vector<AzureItem> half(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(items.size() / 2));
  Configure("  type: azure-retail\n  regions: [eastus]\n");
  Step({.body = AzureBody(items, "")}, std::chrono::seconds(1));
  ASSERT_THAT(Published(), SizeIs(items.size()));
  const int64_t revision = store_.Get()->revision;
  Step({.body = AzureBody(half, "")}, std::chrono::hours(7));
  EXPECT_THAT(metrics_.Text(), HasSubstr("reason=\"shrunk\",source=\"it\"} 1"));
  Step({.code = 500}, std::chrono::hours(7));
  Step({.body = AzureBody(items, ""), .fault = ReplayReply::Fault::kTruncate}, std::chrono::hours(7));
  Step({.body = AzureBody({}, "")}, std::chrono::hours(7));
  items[0].price = "0.0";
  Step({.body = AzureBody(items, "")}, std::chrono::hours(7));
  EXPECT_THAT(Published(), SizeIs(items.size()));
  for (const auto& [key, entry] : Published()) EXPECT_GT(entry.price_per_instance_hour, 0) << key;
  EXPECT_EQ(store_.Get()->revision, revision);
  // Rate limited: no further request before Retry-After.
  Step({.code = 429, .headers = {{"Retry-After", "600"}}}, std::chrono::hours(7));
  const size_t asked = server_.requests().size();
  Step({.body = AzureBody(items, "")}, std::chrono::seconds(300));
  EXPECT_EQ(server_.requests().size(), asked);
  Step({.body = AzureBody(items, "")}, std::chrono::seconds(400));
  EXPECT_EQ(server_.requests().size(), asked + 1);
}

}  // namespace
}  // namespace medley::sched
