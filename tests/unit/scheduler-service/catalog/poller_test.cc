#include "scheduler-service/catalog/poller.h"
#include "common/base/testing/temp_dir.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <latch>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/base/testing/fake_clock.h"
#include "common/base/testing/status_matchers.h"
#include "scheduler-service/catalog/last_good.h"
#include "scheduler-service/catalog/testing/scripted_feed.h"

namespace medley::sched {
namespace {

using std::chrono::minutes;
using testing::HasSubstr;

class PollerTest : public testing::Test {
 protected:
  PollerTest() : folder_(*base::MakeTempDir("medley-poller-test")) {}
  ~PollerTest() override { base::RemoveTempDir(folder_); }

  // Returns the elements of `answers_` in order, and repeats the last one.
  std::vector<ConfiguredFeed> Feeds() {
    FeedTraits traits;
    traits.period = minutes(15);
    std::vector<ConfiguredFeed> slots(1);
    slots[0].feed = std::make_unique<ScriptedFeed>("src", traits, [this](base::WallTime now, std::stop_token) {
      asked_.push_back(now);
      FetchResult result = answers_.front();
      if (answers_.size() > 1) answers_.pop_front();
      return result;
    });
    return slots;
  }
  static FetchResult Price(double price) {
    return {Snapshot{{Offer("aws", "r", "", "a", "spot", price)}, true, {}}, {}};
  }
  void Advance(Poller& poller, base::nanoseconds by) {
    for (base::nanoseconds done{}; done < by; done += base::seconds(1)) {
      clock_.Advance(base::seconds(1));
      poller.Step({});
    }
  }
  double Seconds(size_t i) const { return base::ToSeconds(asked_[i] - asked_[i - 1]); }
  double PriceNow() const {
    return store_.Get()->entries.empty() ? 0 : store_.Get()->entries[0].price_per_instance_hour;
  }

  const std::filesystem::path folder_;
  base::FakeClock clock_;
  CatalogStore store_;
  metrics::Registry metrics_;
  std::deque<FetchResult> answers_;
  std::vector<base::WallTime> asked_;
};

TEST_F(PollerTest, PollsEveryPeriodWithJitter) {
  answers_ = {Price(1)};
  Poller poller({}, Feeds(), store_, metrics_, clock_);
  poller.Step({});
  ASSERT_EQ(asked_.size(), 1u);  // polled at once
  EXPECT_EQ(store_.Get()->revision, 1);
  Advance(poller, minutes(60 * 5));
  ASSERT_GE(asked_.size(), 18u);
  double least = 1e9, most = 0;
  for (size_t i = 1; i < asked_.size(); ++i) {
    least = std::min(least, Seconds(i));
    most = std::max(most, Seconds(i));
  }
  EXPECT_GE(least, 900 * 0.9);
  EXPECT_LE(most, 900 * 1.1 + 1);
  EXPECT_GT(most - least, 30);
  EXPECT_EQ(store_.Get()->revision, 1);  // nothing changed
  EXPECT_THAT(metrics_.Text(),
              HasSubstr(fmt::format("medley_price_fetch_total{{result=\"ok\",source=\"src\"}} {}", asked_.size())));
}

TEST_F(PollerTest, FaultsLeaveTheLastGoodPricesAndAreCounted) {
  answers_ = {Price(1),
              {base::ResourceExhausted("429"), minutes(20)},
              {base::Unavailable("500"), {}},
              {base::InvalidArgument("truncated body"), {}},
              {base::DeadlineExceeded("no answer in 10 min"), {}},
              {Snapshot{{Offer("aws", "r", "", "a", "spot", 0)}, true, {}}, {}},
              Price(1.5)};
  Poller poller({}, Feeds(), store_, metrics_, clock_);
  poller.Step({});
  Advance(poller, minutes(90));
  ASSERT_GE(asked_.size(), 7u);
  EXPECT_GE(Seconds(2), 1200);  // Retry-After
  EXPECT_LE(Seconds(3), 3);     // second failure in a row: 2 s with jitter, rounded up
  EXPECT_LE(Seconds(4), 6);
  EXPECT_LE(Seconds(5), 11);
  EXPECT_GE(Seconds(6), 810);  // a successful fetch: the normal period again, although the answer was rejected
  EXPECT_EQ(PriceNow(), 1.5);
  const std::string text = metrics_.Text();
  for (const char* line :
       {"medley_price_fetch_total{result=\"resource_exhausted\",source=\"src\"} 1",
        "medley_price_fetch_total{result=\"unavailable\",source=\"src\"} 1",
        "medley_price_fetch_total{result=\"deadline_exceeded\",source=\"src\"} 1",
        "medley_price_fetch_total{result=\"invalid_argument\",source=\"src\"} 1",
        "medley_price_rejected_total{reason=\"malformed\",source=\"src\"} 1",
        "medley_price_rejected_total{reason=\"price\",source=\"src\"} 1", "medley_price_publish_total 2"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST_F(PollerTest, BackoffGrowsToAQuarterOfAnHour) {
  answers_ = {{base::Unavailable("down"), {}}};
  Poller poller({}, Feeds(), store_, metrics_, clock_);
  poller.Step({});
  Advance(poller, minutes(120));
  ASSERT_GT(asked_.size(), 12u);
  EXPECT_LE(Seconds(1), 2);
  EXPECT_GE(Seconds(asked_.size() - 1), 900 * 0.8);
  EXPECT_LE(Seconds(asked_.size() - 1), 900 * 1.2 + 1);
  EXPECT_EQ(store_.Get()->revision, 0);  // no prices are known, so none are published
}

TEST_F(PollerTest, ARestartDuringAnOutageRestoresPrices) {
  PollerOptions options;
  options.last_good = folder_ / "last.json";
  answers_ = {Price(1.25)};
  {
    Poller poller(options, Feeds(), store_, metrics_, clock_);
    poller.Step({});
  }
  answers_ = {{base::Unavailable("down"), {}}};
  CatalogStore store;
  clock_.Advance(std::chrono::hours(3));
  Poller again(options, Feeds(), store, metrics_, clock_);
  ASSERT_EQ(store.Get()->entries.size(), 1u);
  EXPECT_EQ(store.Get()->entries[0].price_per_instance_hour, 1.25);
  EXPECT_EQ(store.Get()->entries[0].quality, Quality::kCached);
  EXPECT_EQ(store.Get()->revision, 2);  // continues counting
  again.Step({});
  EXPECT_EQ(store.Get()->entries.size(), 1u);
}

// A feed that is narrowed to fewer regions answers with fewer prices from then on.
TEST_F(PollerTest, AnEditedFeedMayAnswerWithFewerPrices) {
  PollerOptions options;
  options.last_good = folder_ / "last.json";
  const auto run = [&](const std::string& configuration, int prices) {
    Snapshot answer{{}, true, {}};
    for (int i = 0; i < prices; ++i) {
      answer.entries.push_back(Offer("aws", "r", "", fmt::format("type-{}", i), "spot", 1.25));
    }
    answers_ = {{answer, {}}};
    std::vector<ConfiguredFeed> feeds = Feeds();
    feeds[0].configuration = configuration;
    metrics::Registry metrics;
    Poller poller(options, std::move(feeds), store_, metrics, clock_);
    poller.Step({});
    return metrics.Text().find("reason=\"shrunk\"") == std::string::npos;
  };
  EXPECT_TRUE(run("all regions", 10));
  EXPECT_FALSE(run("all regions", 2));
  EXPECT_TRUE(run("one region", 2));
}

TEST_F(PollerTest, ACorruptFileIsIgnored) {
  PollerOptions options;
  options.last_good = folder_ / "last.json";
  answers_ = {Price(1.25)};
  {
    Poller poller(options, Feeds(), store_, metrics_, clock_);
    poller.Step({});
  }
  std::string text = *base::ReadFile(options.last_good);
  ASSERT_THAT(DecodeLastGood(text), base::IsOk());
  for (const size_t cut : {size_t{0}, text.size() / 2, text.size() - 1}) {
    EXPECT_THAT(DecodeLastGood(text.substr(0, cut)), base::StatusIs(absl::StatusCode::kDataLoss));
  }
  text[text.find("1.25")] = '9';
  ASSERT_THAT(base::WriteFileAtomic(options.last_good, text), base::IsOk());
  CatalogStore store;
  Poller again(options, Feeds(), store, metrics_, clock_);
  EXPECT_EQ(store.Get()->revision, 0);
  EXPECT_THAT(metrics_.Text(), HasSubstr("medley_price_rejected_total{reason=\"corrupt\",source=\"last-good\"} 1"));
  again.Step({});
  EXPECT_EQ(store.Get()->revision, 1);
}

TEST_F(PollerTest, AHangingFeedDoesNotDelayOthers) {
  answers_ = {Price(1)};
  std::vector<ConfiguredFeed> feeds = Feeds();
  std::latch hanging(1);
  feeds.emplace_back().feed =
      std::make_unique<ScriptedFeed>("hangs", FeedTraits(), [&](base::WallTime, std::stop_token stop) {
        hanging.count_down();
        base::SystemClock().SleepFor(minutes(10), stop);
        return FetchResult{base::Cancelled("stopped"), {}};
      });
  Poller poller({}, std::move(feeds), store_, metrics_, clock_);
  poller.Start();
  hanging.wait();
  EXPECT_NE(store_.WaitNewer(0, {}, base::seconds(10)), nullptr);
  poller.Stop();
  poller.Stop();
  EXPECT_EQ(PriceNow(), 1);
}

}  // namespace
}  // namespace medley::sched
