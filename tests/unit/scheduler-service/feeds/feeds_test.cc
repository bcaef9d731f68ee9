// Tests the feeds with a scripted fetcher: their requests, and which responses make a result partial or an error.
#include "scheduler-service/feeds/feeds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/testing/status_matchers.h"
#include "common/base/url.h"
#include "scheduler-service/feeds/testing/fake_fetcher.h"
#include "tests/unit/scheduler-service/feeds/azure_pages.h"
#include "tests/unit/scheduler-service/feeds/spot_xml.h"
#include "tests/unit/scheduler-service/feeds/test_data.h"

namespace medley::sched {
namespace {

using absl::StatusCode;
using base::StatusIs;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;
using testing::SizeIs;
using testing::StartsWith;

const base::WallTime kNow = *base::ParseTime("2026-08-01T00:00:00Z");

absl::Status ErrorOf(const FetchResult& result) {
  const auto* status = std::get_if<absl::Status>(&result.outcome);
  return status == nullptr ? absl::OkStatus() : *status;
}
const Snapshot& SnapshotOf(const FetchResult& result) {
  MEDLEY_CHECK(std::holds_alternative<Snapshot>(result.outcome), base::ToString(ErrorOf(result)));
  return std::get<Snapshot>(result.outcome);
}

class FeedsTest : public testing::Test {
 protected:
  std::unique_ptr<HttpFetcher> Fetcher(FakeFetcher::Answer answer) {
    return std::make_unique<FakeFetcher>(std::move(answer), requests_);
  }
  static bool Asks(const FetchRequest& request, const std::string& text) {
    return request.url.find(base::UrlEncode(text)) != std::string::npos;
  }
  std::vector<FetchRequest> requests_;
};

// --- azure-retail

TEST_F(FeedsTest, AzureFollowsPagesOfEveryRegion) {
  AzureRetailOptions options{.selection = {{"eastus", "westeurope"}, {}}};
  const auto feed =
      MakeAzureRetailFeed("azure", options, Fetcher([&](const FetchRequest& request) {
                            if (request.url.ends_with("/2")) {
                              return FetchReply{200, AzureBody({{"Standard_B", "eastus", "2"}}, "")};
                            }
                            const bool east = Asks(request, "armRegionName eq 'eastus'");
                            return FetchReply{200, AzureBody({{"Standard_A", east ? "eastus" : "westeurope", "1"}},
                                                             east ? "https://prices.azure.com:443/api/2" : "")};
                          }));
  const FetchResult result = feed->Fetch(kNow, {});
  const Snapshot& snapshot = SnapshotOf(result);
  EXPECT_TRUE(snapshot.complete);
  EXPECT_THAT(snapshot.entries, SizeIs(3));
  ASSERT_THAT(requests_, SizeIs(3));
  EXPECT_THAT(requests_[0].url,
              StartsWith("https://prices.azure.com/api/retail/prices?api-version=2023-01-01-preview"));
}

TEST_F(FeedsTest, AzureRejectsForeignAndEndlessPages) {
  const auto outcome = [&](const std::string& next, int max_pages) {
    AzureRetailOptions options{.selection = {{"eastus"}, {}}, .max_pages = max_pages};
    int number = 0;
    std::string numbered = next;
    const auto feed = MakeAzureRetailFeed("azure", options, Fetcher([&](const FetchRequest&) {
                                            std::string link = next;
                                            if (const size_t at = link.find('#'); at != std::string::npos) {
                                              link.replace(at, 1, std::to_string(++number));
                                            }
                                            return FetchReply{200, AzureBody({{"Standard_A", "eastus", "1"}}, link)};
                                          }));
    return ErrorOf(feed->Fetch(kNow, {}));
  };
  EXPECT_THAT(
      outcome("https://evil.example/api?key=1", 10),
      StatusIs(
          StatusCode::kPermissionDenied,
          AllOf(HasSubstr("eastus: page 2: the link to this page points to another host: https://evil.example/api"),
                Not(HasSubstr("key")))));
  EXPECT_THAT(outcome("http://prices.azure.com/api", 10), StatusIs(StatusCode::kPermissionDenied));
  EXPECT_THAT(outcome("https://prices.azure.com@evil.example/", 10), StatusIs(StatusCode::kPermissionDenied));
  EXPECT_THAT(outcome("https://prices.azure.com/same", 10),
              StatusIs(StatusCode::kInvalidArgument,
                       HasSubstr("page 3: the link to this page is one that was already read before")));
  EXPECT_THAT(outcome("https://prices.azure.com/page-#", 10),
              StatusIs(StatusCode::kResourceExhausted, HasSubstr("more than 10 pages")));
}

TEST_F(FeedsTest, AzureRegionThatFailsMakesItPartial) {
  AzureRetailOptions options{.selection = {{"eastus", "westeurope"}, {}}};
  auto feed = MakeAzureRetailFeed("azure", options, Fetcher([](const FetchRequest& request) {
                                    if (Asks(request, "'eastus'")) return FetchReply{500, "oops"};
                                    return FetchReply{200, AzureBody({{"Standard_A", "westeurope", "1"}}, "")};
                                  }));
  const FetchResult result = feed->Fetch(kNow, {});
  const Snapshot& snapshot = SnapshotOf(result);
  EXPECT_FALSE(snapshot.complete);
  EXPECT_THAT(snapshot.entries, SizeIs(1));
  EXPECT_THAT(snapshot.warnings, Contains(StatusIs(StatusCode::kUnavailable, HasSubstr("eastus: page 1: HTTP 500"))));
  // Rate limited: the other region is not fetched.
  requests_.clear();
  feed = MakeAzureRetailFeed("azure", options, Fetcher([](const FetchRequest&) {
                               return FetchReply{.code = 429, .retry_after = std::chrono::seconds(30)};
                             }));
  const FetchResult limited = feed->Fetch(kNow, {});
  EXPECT_THAT(ErrorOf(limited), StatusIs(StatusCode::kResourceExhausted));
  EXPECT_EQ(limited.retry_after, base::seconds(30));
  EXPECT_THAT(requests_, SizeIs(1));
}

// --- aws-spot-feed

TEST_F(FeedsTest, AwsSpotFeedSendsTheLastEtag) {
  FetchReply reply{.code = 200, .body = PriceData("spot_feed_2021.json"), .etag = "\"v1\"", .last_modified = "Sat"};
  const auto feed = MakeAwsSpotFeed("aws", {}, Fetcher([&](const FetchRequest&) { return reply; }));
  EXPECT_THAT(SnapshotOf(feed->Fetch(kNow, {})).entries, SizeIs(110));
  EXPECT_EQ(requests_.back().etag, "");
  EXPECT_EQ(requests_.back().url, "https://website.spot.ec2.aws.a2z.com/spot.json");
  reply = {.code = 304};
  EXPECT_TRUE(std::holds_alternative<Unchanged>(feed->Fetch(kNow, {}).outcome));
  EXPECT_EQ(requests_.back().etag, "\"v1\"");
  EXPECT_EQ(requests_.back().last_modified, "Sat");
  // After an invalid response the next request is unconditional. Otherwise a 304 would confirm prices that were never
  // read.
  reply = {.code = 200, .body = "{", .etag = "\"v2\""};
  EXPECT_THAT(ErrorOf(feed->Fetch(kNow, {})), StatusIs(StatusCode::kInvalidArgument));
  reply = {.code = 304};
  EXPECT_THAT(ErrorOf(feed->Fetch(kNow, {})), StatusIs(StatusCode::kInvalidArgument, HasSubstr("304")));
  EXPECT_EQ(requests_.back().etag, "");
}

// --- aws-spot-history

std::string FakeEnvironment(const std::string& name) {
  if (name == "AWS_ACCESS_KEY_ID") return "AKIDEXAMPLE";
  if (name == "AWS_SECRET_ACCESS_KEY") return "secret";
  return "";
}

SpotRecord Record(const std::string& zone, double price) {
  return {zone, "p3.2xlarge", "Linux/UNIX", price, *base::ParseTime("2026-07-31T00:00:00Z")};
}

TEST_F(FeedsTest, SpotHistoryPagesToTheEndAndSigns) {
  AwsSpotHistoryOptions options{.selection = {{"us-east-1"}, {"p3.*"}}};
  const auto feed = MakeAwsSpotHistoryFeed("history", options, Fetcher([](const FetchRequest& request) {
                                             if (request.form->find("NextToken=t%2F1") != std::string::npos) {
                                               return FetchReply{200, SpotXml({Record("us-east-1c", 2)}, "")};
                                             }
                                             return FetchReply{200, SpotXml({Record("us-east-1b", 1)}, "t/1")};
                                           }),
                                           FakeEnvironment);
  const FetchResult result = feed->Fetch(kNow, {});
  const Snapshot& snapshot = SnapshotOf(result);
  EXPECT_TRUE(snapshot.complete);
  EXPECT_THAT(snapshot.entries, SizeIs(2));
  ASSERT_THAT(requests_, SizeIs(2));
  EXPECT_EQ(requests_[0].url, "https://ec2.us-east-1.amazonaws.com/");
  EXPECT_THAT(*requests_[0].form,
              AllOf(HasSubstr("Action=DescribeSpotPriceHistory&Version=2016-11-"
                              "15&StartTime=2026-08-01T00%3A00%3A00Z"),
                    HasSubstr("ProductDescription.1=Linux%2FUNIX&"), HasSubstr("Filter.1.Value.1=p3.%2A")));
  EXPECT_THAT(requests_[0].headers,
              Contains(Pair("Authorization", HasSubstr("Credential=AKIDEXAMPLE/20260801/us-east-1/ec2/aws4_request, "
                                                       "SignedHeaders=content-type;host;x-amz-date"))));
  EXPECT_THAT(requests_[0].headers, Contains(Pair("X-Amz-Date", "20260801T000000Z")));
}

TEST_F(FeedsTest, SpotHistoryRegionThatFailsHalfwayIsSkipped) {
  AwsSpotHistoryOptions options{.selection = {{"us-east-1", "us-east-2"}, {}}};
  const auto feed =
      MakeAwsSpotHistoryFeed("history", options, Fetcher([](const FetchRequest& request) -> absl::StatusOr<FetchReply> {
                               if (request.url.find("us-east-2") != std::string::npos) {
                                 return FetchReply{200, SpotXml({Record("us-east-2a", 2)}, "")};
                               }
                               if (request.form->find("NextToken") != std::string::npos)
                                 return base::Unavailable("cut off");
                               return FetchReply{200, SpotXml({Record("us-east-1b", 1)}, "t")};
                             }),
                             FakeEnvironment);
  const FetchResult result = feed->Fetch(kNow, {});
  const Snapshot& snapshot = SnapshotOf(result);
  EXPECT_FALSE(snapshot.complete);  // so the catalog keeps the prices of us-east-1
  ASSERT_THAT(snapshot.entries, SizeIs(1));
  EXPECT_EQ(snapshot.entries[0].offering->region, "us-east-2");
  EXPECT_THAT(snapshot.warnings, Contains(StatusIs(StatusCode::kUnavailable, "us-east-1: page 2: cut off")));
}

TEST_F(FeedsTest, SpotHistoryErrors) {
  AwsSpotHistoryOptions options{.selection = {{"us-east-1"}, {}}, .max_pages = 5};
  FetchReply reply;
  const auto feed =
      MakeAwsSpotHistoryFeed("history", options, Fetcher([&](const FetchRequest&) { return reply; }), FakeEnvironment);
  reply = {.code = 403,
           .body =
               "<Response><Errors><Error><Code>UnauthorizedOperation</Code><Message>You are not "
               "authorized to "
               "perform this operation.</Message></Error></Errors></Response>"};
  EXPECT_THAT(ErrorOf(feed->Fetch(kNow, {})),
              StatusIs(StatusCode::kPermissionDenied, HasSubstr("us-east-1: page 1: UnauthorizedOperation")));
  reply = {.code = 200, .body = SpotXml({Record("us-east-1b", 1)}, "same")};
  EXPECT_THAT(ErrorOf(feed->Fetch(kNow, {})), StatusIs(StatusCode::kInvalidArgument, HasSubstr("read before")));
  reply = {.code = 503, .body = "", .retry_after = std::chrono::seconds(9)};
  const FetchResult result = feed->Fetch(kNow, {});
  EXPECT_THAT(ErrorOf(result), StatusIs(StatusCode::kUnavailable));
  EXPECT_EQ(result.retry_after, base::seconds(9));
  const auto without_keys =
      MakeAwsSpotHistoryFeed("history", options, Fetcher([&](const FetchRequest&) { return reply; }),
                             [](const std::string&) { return std::string(); });
  requests_.clear();
  EXPECT_THAT(ErrorOf(without_keys->Fetch(kNow, {})), StatusIs(StatusCode::kUnauthenticated));
  EXPECT_THAT(requests_, SizeIs(0));
}

TEST_F(FeedsTest, SpotHistoryDocuments) {
  AwsSpotHistoryOptions options{.documents = {"http://files/eu", "http://files/us", "http://files/capped"}};
  const auto feed = MakeAwsSpotHistoryFeed("history", options, Fetcher([](const FetchRequest& request) {
                                             if (request.url.ends_with("eu"))
                                               return FetchReply{200, PriceData("eu-north-1.p3.2xlarge.poll0.json")};
                                             if (request.url.ends_with("us"))
                                               return FetchReply{200, PriceData("us-east-1.p3.2xlarge.poll3.json")};
                                             return FetchReply{200, PriceData("us-east-1.p2.xlarge.capped.json")};
                                           }),
                                           FakeEnvironment);
  const FetchResult result = feed->Fetch(kNow, {});
  const Snapshot& snapshot = SnapshotOf(result);
  EXPECT_FALSE(snapshot.complete);
  EXPECT_THAT(snapshot.entries, SizeIs(testing::Gt(4u)));
  EXPECT_THAT(snapshot.warnings, Contains(StatusIs(StatusCode::kOutOfRange, HasSubstr("after 40 records"))));
}

// --- prometheus

std::string PromBody(const std::string& result) {
  return R"({"status":"success","data":{"resultType":"vector","result":[)" + result + "]}}";
}

TEST_F(FeedsTest, PrometheusQueriesPricesAvailabilityAndAges) {
  const std::string labels = R"("instance_type":"p3.2xlarge","capacity_type":"spot","zone":"us-east-1b")";
  PrometheusOptions options{.endpoint = "http://prometheus:9090/prefix/"};
  const auto feed = MakePrometheusFeed(
      "prom", options, Fetcher([&](const FetchRequest& request) {
        if (Asks(request, "timestamp(karpenter")) {
          return FetchReply{200, PromBody("{\"metric\":{" + labels + "},\"value\":[1785542400,\"1785542340\"]}")};
        }
        if (Asks(request, "offering_price_estimate")) {
          return FetchReply{200, PromBody("{\"metric\":{" + labels + "},\"value\":[1785542400,\"1.02\"]}")};
        }
        return FetchReply{200, PromBody("")};
      }));
  const FetchResult result = feed->Fetch(kNow, {});
  const Snapshot& snapshot = SnapshotOf(result);
  ASSERT_THAT(snapshot.entries, SizeIs(1));
  EXPECT_EQ(snapshot.entries[0].observed_at, kNow - base::seconds(60));
  EXPECT_THAT(requests_, SizeIs(4));  // OpenCost has no series, so its other queries are not sent
  EXPECT_THAT(requests_[0].url, StartsWith("http://prometheus:9090/prefix/api/v1/query?query=max%20by%20%28"));
  EXPECT_THAT(snapshot.warnings, SizeIs(0));
  // Our clock steps by an hour: ages do not change, and there is a warning.
  const FetchResult stepped = feed->Fetch(kNow + std::chrono::hours(1), {});
  EXPECT_EQ(SnapshotOf(stepped).entries[0].observed_at, kNow + std::chrono::hours(1) - base::seconds(60));
  EXPECT_THAT(SnapshotOf(stepped).warnings,
              Contains(StatusIs(StatusCode::kFailedPrecondition, HasSubstr("3600 s behind"))));
}

TEST_F(FeedsTest, PrometheusErrors) {
  FetchReply reply;
  const auto feed = MakePrometheusFeed("prom", {.endpoint = "http://prometheus:9090"},
                                       Fetcher([&](const FetchRequest&) { return reply; }));
  reply = {200, PromBody("")};
  EXPECT_THAT(ErrorOf(feed->Fetch(kNow, {})), StatusIs(StatusCode::kNotFound, HasSubstr("no series")));
  reply = {503, R"({"status":"error","errorType":"timeout","error":"query timed out"})"};
  EXPECT_THAT(ErrorOf(feed->Fetch(kNow, {})), StatusIs(StatusCode::kUnavailable, HasSubstr("query timed out")));
  reply = {.code = 429, .body = "slow down", .retry_after = std::chrono::seconds(5)};
  const FetchResult limited = feed->Fetch(kNow, {});
  EXPECT_THAT(ErrorOf(limited), StatusIs(StatusCode::kResourceExhausted, HasSubstr("slow down")));
  EXPECT_EQ(limited.retry_after, base::seconds(5));
  reply = {200, "<html>"};
  EXPECT_THAT(ErrorOf(feed->Fetch(kNow, {})), StatusIs(StatusCode::kInvalidArgument, HasSubstr("broken JSON")));
}

}  // namespace
}  // namespace medley::sched
