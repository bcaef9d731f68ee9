// The Prometheus feed against a real Prometheus, which scrapes a small exporter in this test. The prices are AWS
// on-demand and spot prices in tests/data/prices/feeds; the series have the names and labels of Karpenter and OpenCost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "common/base/mutex.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/url.h"
#include "scheduler-service/feeds/factory.h"
#include "scheduler-service/feeds/prometheus_parser.h"
#include "tests/integration/scheduler/prometheus_server.h"
#include "tests/integration/scheduler/replay_server.h"

namespace medley::sched {
namespace {

using absl::StatusCode;
using base::IsOk;
using base::StatusIs;
using testing::HasSubstr;
using testing::SizeIs;

constexpr char kKarpenter[] =
    R"(# TYPE karpenter_cloudprovider_instance_type_offering_price_estimate gauge
karpenter_cloudprovider_instance_type_offering_price_estimate{instance_type="p3.2xlarge",capacity_type="on-demand",zone="us-east-1b"} 3.06
karpenter_cloudprovider_instance_type_offering_price_estimate{instance_type="p3.2xlarge",capacity_type="spot",zone="us-east-1b"} 1.0274
karpenter_cloudprovider_instance_type_offering_price_estimate{instance_type="p3.2xlarge",capacity_type="spot",zone="us-east-1c"} 0
karpenter_cloudprovider_instance_type_offering_price_estimate{instance_type="p3.2xlarge",capacity_type="reserved",zone="us-east-1b"} 3.06e-07
karpenter_cloudprovider_instance_type_offering_price_estimate{instance_type="odd.large",capacity_type="spot",zone="us-east-1b"} NaN
# TYPE karpenter_cloudprovider_instance_type_offering_available gauge
karpenter_cloudprovider_instance_type_offering_available{instance_type="p3.2xlarge",capacity_type="on-demand",zone="us-east-1b"} 1
karpenter_cloudprovider_instance_type_offering_available{instance_type="p3.2xlarge",capacity_type="spot",zone="us-east-1b"} 0
)";

constexpr char kOpenCost[] =
    R"(# TYPE node_total_hourly_cost gauge
node_total_hourly_cost{arch="amd64",instance="n1",instance_type="p3.8xlarge",node="n1",provider_id="aws:///us-east-1b/i-1",region="us-east-1"} 12.24
node_total_hourly_cost{arch="amd64",instance="n2",instance_type="strange",node="n2",provider_id="",region=""} 0.2
# TYPE node_gpu_count gauge
node_gpu_count{instance="n1",node="n1"} 4
# TYPE kubecost_node_is_spot gauge
kubecost_node_is_spot{instance="n1",node="n1"} 0
# TYPE node_cpu_hourly_cost gauge
node_cpu_hourly_cost{instance="n1",node="n1"} 0.05
node_cpu_hourly_cost{instance="n2",node="n2"} 0.031611
# TYPE node_ram_hourly_cost gauge
node_ram_hourly_cost{instance="n1",node="n1"} 0.004237
node_ram_hourly_cost{instance="n2",node="n2"} 0.004237
)";

class PrometheusFeedTest : public testing::Test {
 protected:
  void StartWith(std::string metrics) {
    metrics_ = std::move(metrics);
    exporter_ = std::make_unique<ReplayServer>([this](const ReplayRequest&) {
      base::MutexLock lock(mutex_);
      return ReplayReply{.headers = {{"Content-Type", "text/plain; version=0.0.4"}}, .body = metrics_};
    });
    auto started = PrometheusServer::Start(fmt::format("127.0.0.1:{}", exporter_->port()));
    ASSERT_THAT(started.status(), IsOk());
    prometheus_ = *std::move(started);
    auto node = document::Reader::Parse("endpoint: " + prometheus_->url() + "\n");
    ASSERT_THAT(node.status(), IsOk());
    auto feed = HttpFeedFactories(clock_).at("prometheus")("prometheus", *std::move(node));
    ASSERT_THAT(feed.status(), IsOk());
    feed_ = *std::move(feed);
  }
  void Export(std::string metrics) {
    base::MutexLock lock(mutex_);
    metrics_ = std::move(metrics);
  }

  // Fetches until the result meets the condition, for at most a minute. Returns the last result.
  FetchResult FetchUntil(const std::function<bool(const FetchResult&)>& wanted) {
    const base::SteadyTime deadline = clock_.Steady() + base::seconds(60);
    for (;;) {
      FetchResult result = feed_->Fetch(clock_.Now(), {});
      if (wanted(result) || clock_.Steady() >= deadline) return result;
      clock_.SleepFor(base::milliseconds(20), {});
    }
  }
  static size_t Size(const FetchResult& result) {
    const auto* snapshot = std::get_if<Snapshot>(&result.outcome);
    return snapshot == nullptr ? 0 : snapshot->entries.size();
  }
  static std::map<std::string, CatalogEntry> ByKey(const FetchResult& result) {
    std::map<std::string, CatalogEntry> out;
    if (const auto* snapshot = std::get_if<Snapshot>(&result.outcome)) {
      for (const CatalogEntry& entry : snapshot->entries) out.emplace(KeyOf(entry), entry);
    }
    return out;
  }

  base::SystemClock clock_;
  base::Mutex mutex_;
  std::string metrics_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<ReplayServer> exporter_;
  std::unique_ptr<PrometheusServer> prometheus_;
  std::unique_ptr<Feed> feed_;
};

constexpr char kSpotKey[] = "aws/us-east-1/us-east-1b/p3.2xlarge/spot";
constexpr char kOnDemandKey[] = "aws/us-east-1/us-east-1b/p3.2xlarge/on-demand";

TEST_F(PrometheusFeedTest, EntriesAreCorrect) {
  StartWith(std::string(kKarpenter) + kOpenCost);
  const FetchResult result = FetchUntil([](const FetchResult& r) { return Size(r) == 3; });
  const auto entries = ByKey(result);
  ASSERT_THAT(entries, SizeIs(3)) << base::ToString(
      std::holds_alternative<absl::Status>(result.outcome) ? std::get<absl::Status>(result.outcome) : absl::OkStatus());
  EXPECT_DOUBLE_EQ(entries.at(kOnDemandKey).price_per_instance_hour, 3.06);
  EXPECT_TRUE(entries.at(kOnDemandKey).available);
  EXPECT_DOUBLE_EQ(entries.at(kSpotKey).price_per_instance_hour, 1.0274);
  EXPECT_FALSE(entries.at(kSpotKey).available);
  const CatalogEntry& node = entries.at("aws/us-east-1/us-east-1b/p3.8xlarge/on-demand");
  EXPECT_DOUBLE_EQ(node.price_per_instance_hour, 12.24);
  EXPECT_EQ(node.shape.gpus, 4);
  EXPECT_DOUBLE_EQ(node.UnitPrice(), 3.06);
  // Scraped every 100 ms.
  EXPECT_LT(base::ToSeconds(clock_.Now() - entries.at(kSpotKey).observed_at), 60);
  const auto& warnings = std::get<Snapshot>(result.outcome).warnings;
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_THAT(warnings[0], StatusIs(StatusCode::kNotFound, HasSubstr("'n2'")));
  // A change is seen.
  std::string changed = kKarpenter;
  changed.replace(changed.find("1.0274"), 6, "1.1059");
  Export(changed);
  const FetchResult later = FetchUntil([](const FetchResult& r) {
    const auto by_key = ByKey(r);
    return by_key.contains(kSpotKey) && by_key.at(kSpotKey).price_per_instance_hour == 1.1059;
  });
  EXPECT_DOUBLE_EQ(ByKey(later).at(kSpotKey).price_per_instance_hour, 1.1059);
}

TEST_F(PrometheusFeedTest, SeriesOfADeadExporterDisappear) {
  StartWith(kKarpenter);
  ASSERT_EQ(Size(FetchUntil([](const FetchResult& r) { return Size(r) == 2; })), 2u);
  exporter_.reset();
  // Prometheus marks the series stale at the next scrape, which fails.
  const FetchResult result = FetchUntil([](const FetchResult& r) { return Size(r) == 0; });
  ASSERT_TRUE(std::holds_alternative<absl::Status>(result.outcome));
  EXPECT_THAT(std::get<absl::Status>(result.outcome), StatusIs(StatusCode::kNotFound, HasSubstr("no series")));
}

TEST_F(PrometheusFeedTest, LookBackDoesNotHideAge) {
  // Samples with explicit timestamps (as from federation or a push) get no stale marker when the exporter dies:
  // Prometheus returns them for 5 more minutes, with the time of the query. The feed reports their true age.
  const auto two_minutes_ago =
      std::chrono::duration_cast<std::chrono::milliseconds>(clock_.Now().time_since_epoch()).count() - 120'000;
  StartWith(
      fmt::format("karpenter_cloudprovider_instance_type_offering_price_estimate{{instance_type=\"p3.2xlarge\","
                  "capacity_type=\"spot\",zone=\"us-east-1b\"}} 1.0274 {}\n",
                  two_minutes_ago));
  const FetchResult first = FetchUntil([](const FetchResult& r) { return Size(r) == 1; });
  ASSERT_EQ(Size(first), 1u);
  const base::WallTime sampled{std::chrono::milliseconds(two_minutes_ago)};
  EXPECT_NEAR(base::ToSeconds(ByKey(first).at(kSpotKey).observed_at - sampled), 0, 2);
  const size_t scrapes = exporter_->requests().size();
  ASSERT_TRUE(exporter_->WaitForRequests(scrapes + 2));
  exporter_.reset();
  const FetchResult dead = feed_->Fetch(clock_.Now(), {});
  ASSERT_EQ(Size(dead), 1u);
  EXPECT_NEAR(base::ToSeconds(ByKey(dead).at(kSpotKey).observed_at - sampled), 0, 2);
  // A plain query returns its own time.
  CurlFetcher fetcher({}, clock_);
  const auto reply = fetcher.Fetch(
      {.url = prometheus_->url() + "/api/v1/query?" + base::QueryEncode({{"query", kKarpenterPrice}})}, {});
  ASSERT_THAT(reply.status(), IsOk());
  const auto vector = ParsePromVector(reply->body);
  ASSERT_THAT(vector.status(), IsOk());
  EXPECT_GT(vector->samples.at(0).evaluated - static_cast<double>(two_minutes_ago) / 1000, 115);
}

TEST_F(PrometheusFeedTest, PrometheusErrorsAreReported) {
  StartWith("");
  CurlFetcher fetcher({}, clock_);
  const auto reply = fetcher.Fetch({.url = prometheus_->url() + "/api/v1/query?query=max%20by("}, {});
  ASSERT_THAT(reply.status(), IsOk());
  EXPECT_EQ(reply->code, 400);
  EXPECT_THAT(ParsePromVector(reply->body), StatusIs(StatusCode::kInvalidArgument, HasSubstr("bad_data: ")));
  const auto scalar = fetcher.Fetch({.url = prometheus_->url() + "/api/v1/query?query=1"}, {});
  EXPECT_THAT(ParsePromVector(scalar->body),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("must be vector, is 'scalar'")));
}

}  // namespace
}  // namespace medley::sched
