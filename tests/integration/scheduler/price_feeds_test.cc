// The feeds, created from a configuration with CurlFetcher, against a loopback server that replays recorded responses
// and injects faults.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "common/aws/sigv4.h"
#include "common/base/testing/fake_clock.h"
#include "common/base/testing/status_matchers.h"
#include "scheduler-service/feeds/factory.h"
#include "tests/integration/scheduler/replay_server.h"
#include "tests/unit/scheduler-service/feeds/azure_pages.h"
#include "tests/unit/scheduler-service/feeds/spot_xml.h"
#include "tests/unit/scheduler-service/feeds/test_data.h"

namespace medley::sched {
namespace {

using absl::StatusCode;
using base::IsOk;
using base::StatusIs;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using Fault = ReplayReply::Fault;

const aws::Keys kKeys{"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", ""};

std::string TestEnvironment(const std::string& name) {
  if (name == "AWS_ACCESS_KEY_ID") return kKeys.access_key_id;
  if (name == "AWS_SECRET_ACCESS_KEY") return kKeys.secret_access_key;
  return "";
}

absl::Status ErrorOf(const FetchResult& result) {
  const auto* status = std::get_if<absl::Status>(&result.outcome);
  return status == nullptr ? absl::OkStatus() : *status;
}

std::map<std::string, double> Prices(const FetchResult& result) {
  std::map<std::string, double> out;
  if (const auto* snapshot = std::get_if<Snapshot>(&result.outcome)) {
    for (const CatalogEntry& entry : snapshot->entries) out[KeyOf(entry)] = entry.price_per_instance_hour;
  }
  return out;
}

// The decoded value of a form field.
std::string FormField(const std::string& form, const std::string& name) {
  const std::string text = "&" + form;
  const size_t begin = text.find("&" + name + "=");
  if (begin == std::string::npos) return "";
  const size_t from = begin + name.size() + 2;
  const std::string value = text.substr(from, text.find('&', from) - from);
  std::string out;
  for (size_t i = 0; i < value.size(); ++i) {
    if (value[i] == '%') {
      out += static_cast<char>(std::stoi(value.substr(i + 1, 2), nullptr, 16));
      i += 2;
    } else {
      out += value[i];
    }
  }
  return out;
}

class PriceFeedsTest : public testing::Test {
 protected:
  std::unique_ptr<Feed> Make(const std::string& type, const std::string& yaml) {
    auto node = document::Reader::Parse(yaml);
    MEDLEY_CHECK(node.ok(), base::ToString(node.status()));
    auto feed = HttpFeedFactories(
                    [this](HttpOptions options) { return std::make_unique<CurlFetcher>(std::move(options), clock_); },
                    TestEnvironment)
                    .at(type)(type, *std::move(node));
    MEDLEY_CHECK(feed.ok(), base::ToString(feed.status()));
    return *std::move(feed);
  }

  base::FakeClock clock_{*base::ParseTime("2026-08-01T00:00:00Z")};
};

// --- (1) AWS: five recorded polls, page by page, signed

// Acts as EC2: checks the signature and returns the records of the current poll, 40 per page.
class Ec2 {
 public:
  explicit Ec2(base::FakeClock& clock) : clock_(clock) {}
  void SetPoll(std::vector<SpotRecord> records) {
    base::MutexLock lock(mutex_);
    records_ = std::move(records);
  }

  ReplayReply operator()(const ReplayRequest& request) {
    base::MutexLock lock(mutex_);
    if (!Signed(request)) return Error(403, "SignatureDoesNotMatch");
    if (FormField(request.body, "Action") != "DescribeSpotPriceHistory") return Error(400, "InvalidAction");
    if (FormField(request.body, "StartTime") != base::FormatTime(clock_.Now())) return Error(400, "InvalidParameter");
    if (request.target.find("eu-north-1") != std::string::npos) return {.body = SpotXml({}, "")};
    const std::string token = FormField(request.body, "NextToken");
    const size_t from = token.empty() ? 0 : std::stoul(token.substr(token.find('+') + 1));
    const size_t to = std::min(from + 40, records_.size());
    const std::vector<SpotRecord> page(records_.begin() + static_cast<std::ptrdiff_t>(from),
                                       records_.begin() + static_cast<std::ptrdiff_t>(to));
    return {.body = SpotXml(page, to == records_.size() ? "" : "page/+" + std::to_string(to))};
  }

 private:
  static ReplayReply Error(int code, const std::string& name) {
    return {.code = code, .body = "<Response><Errors><Error><Code>" + name + "</Code></Error></Errors></Response>"};
  }
  bool Signed(const ReplayRequest& request) const {
    aws::SignableRequest signable{.method = request.method, .host = request.headers.at("host"), .path = request.target};
    signable.headers = {{"Content-Type", request.headers.at("content-type")}};
    signable.body = request.body;
    const std::string region = request.target.find("eu-north-1") == std::string::npos ? "us-east-1" : "eu-north-1";
    for (const auto& [name, value] : aws::SignV4(signable, kKeys, region, "ec2", clock_.Now()).headers) {
      if (name == "Authorization") return request.headers.at("authorization") == value;
    }
    return false;
  }

  base::FakeClock& clock_;
  base::Mutex mutex_;
  std::vector<SpotRecord> records_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(PriceFeedsTest, AwsPollsPageByPage) {
  Ec2 ec2(clock_);
  const ReplayServer server([&](const ReplayRequest& request) { return ec2(request); });
  const auto feed = Make("aws-spot-history",
                         "regions: [us-east-1, eu-north-1]\ninstanceTypes: [p3.2xlarge]\nendpoint: " + server.url() +
                             "/{region}/\ncredentials: environment\n");
  // The current prices at the end of each poll: us-east-1b in the recorded files.
  const std::vector<double> expected = {1.0671, 1.1409, 1.1891, 1.0495, 1.0274};
  size_t asked = 0;
  std::map<std::string, base::WallTime> newest;
  for (size_t poll = 0; poll < expected.size(); ++poll) {
    auto page = ParseSpotHistoryJson(PriceData(fmt::format("us-east-1.p3.2xlarge.poll{}.json", poll)));
    ASSERT_THAT(page, IsOk());
    std::reverse(page->records.begin(), page->records.end());  // out of order: the oldest first
    const size_t pages = (page->records.size() + 39) / 40;
    ec2.SetPoll(page->records);
    clock_.Advance(std::chrono::hours(24 * 7));
    const FetchResult result = feed->Fetch(clock_.Now(), {});
    ASSERT_THAT(ErrorOf(result), IsOk());
    const Snapshot& snapshot = std::get<Snapshot>(result.outcome);
    EXPECT_TRUE(snapshot.complete);
    EXPECT_THAT(snapshot.entries, SizeIs(4));  // four zones; eu-north-1 does not offer the type
    EXPECT_DOUBLE_EQ(Prices(result).at("aws/us-east-1/us-east-1b/p3.2xlarge/spot"), expected[poll]);
    for (const CatalogEntry& entry : snapshot.entries) {
      EXPECT_GT(entry.effective_at, newest[KeyOf(entry)]);
      newest[KeyOf(entry)] = entry.effective_at;
    }
    asked += pages + 1;
    EXPECT_EQ(server.requests().size(), asked);
  }
}

TEST_F(PriceFeedsTest, AwsRejectsAWrongClockOrKey) {
  Ec2 ec2(clock_);
  const ReplayServer server([&](const ReplayRequest& request) { return ec2(request); });
  const auto feed =
      Make("aws-spot-history", "regions: [us-east-1]\nendpoint: " + server.url() + "/\ncredentials: environment\n");
  EXPECT_THAT(ErrorOf(feed->Fetch(clock_.Now() - std::chrono::hours(1), {})),
              StatusIs(StatusCode::kUnauthenticated, HasSubstr("SignatureDoesNotMatch")));
}

TEST_F(PriceFeedsTest, AwsDocumentsOfTheCommandLineTool) {
  const ReplayServer server(
      [](const ReplayRequest& request) { return ReplayReply{.body = PriceData(request.target.substr(1))}; });
  const std::string url = server.url();
  const auto feed = Make("aws-spot-history", "documents:\n- " + url + "/us-east-1.p3.2xlarge.poll4.json\n- " + url +
                                                 "/eu-north-1.p3.2xlarge.poll0.json\n");
  const FetchResult result = feed->Fetch(clock_.Now(), {});
  EXPECT_THAT(Prices(result), SizeIs(4));
  EXPECT_TRUE(std::get<Snapshot>(result.outcome).complete);
}

// --- (4) the public feed

TEST_F(PriceFeedsTest, AwsSpotFeedAndItsPitfalls) {
  std::string body = PriceData("spot_feed_2026-08.json"), etag = "\"1\"";
  const ReplayServer server([&](const ReplayRequest& request) {
    const auto asked = request.headers.find("if-none-match");
    if (asked != request.headers.end() && asked->second == etag) return ReplayReply{.code = 304};
    return ReplayReply{.headers = {{"ETag", etag}}, .body = body};
  });
  const auto feed = Make("aws-spot-feed", "endpoint: " + server.url() + "/spot.json\n");
  const auto prices = Prices(feed->Fetch(clock_.Now(), {}));
  EXPECT_DOUBLE_EQ(prices.at("aws/us-east-1//p3.2xlarge/spot"), 0.5509);
  EXPECT_DOUBLE_EQ(prices.at("aws/af-south-1//t3.nano/spot"), 0.0009);
  EXPECT_TRUE(std::holds_alternative<Unchanged>(feed->Fetch(clock_.Now(), {}).outcome));
  body = "callback(" + PriceData("spot_feed_2021.json") + ");";
  etag = "\"2\"";
  EXPECT_DOUBLE_EQ(Prices(feed->Fetch(clock_.Now(), {})).at("aws/us-east-1//m5.large/spot"), 0.0382);
}

// --- (6) faults, on every feed

struct FeedCase {
  std::string type;
  std::string yaml;  // configuration that contains ENDPOINT
  std::string good;  // a valid response
};

std::vector<FeedCase> FeedCases() {
  return {
      {"aws-spot-feed", "endpoint: ENDPOINT\n", PriceData("spot_feed_2021.json")},
      {"azure-retail", "endpoint: ENDPOINT\nregions: [eastus]\n", AzureBody({{"Standard_A", "eastus", "1"}}, "")},
      {"aws-spot-history", "endpoint: ENDPOINT\nregions: [us-east-1]\ncredentials: environment\n",
       SpotXml({{"us-east-1b", "p3.2xlarge", "Linux/UNIX", 1.0, base::WallTime(base::seconds(1'700'000'000))}}, "")},
      {"prometheus", "endpoint: ENDPOINT\nopencost: false\n",
       R"({"status":"success","data":{"resultType":"vector","result":[{"metric":{"instance_type":"p3.2xlarge",)"
       R"("capacity_type":"spot","zone":"us-east-1b"},"value":[1785542400,"1.02"]}]}})"}};
}

class PriceFaultsTest : public PriceFeedsTest, public testing::WithParamInterface<size_t> {
 protected:
  FetchResult AskAt(const std::string& endpoint, const std::string& more = "") {
    const FeedCase feed = FeedCases().at(GetParam());
    std::string yaml = feed.yaml + more;
    yaml.replace(yaml.find("ENDPOINT"), 8, endpoint);
    return Make(feed.type, yaml)->Fetch(clock_.Now(), {});
  }
  FetchResult Ask(const ReplayReply& reply, const std::string& more = "") {
    const ReplayServer server([&](const ReplayRequest&) { return reply; });
    return AskAt(server.url() + "/", more);
  }
  const std::string good_ = FeedCases().at(GetParam()).good;
};

TEST_P(PriceFaultsTest, NoFaultGivesPrices) {
  ASSERT_THAT(Prices(Ask({.body = good_})), testing::Not(IsEmpty()));
  const FetchResult limited = Ask({.code = 429, .headers = {{"Retry-After", "17"}}, .body = "slow down"});
  EXPECT_THAT(ErrorOf(limited), StatusIs(StatusCode::kResourceExhausted, HasSubstr("429")));
  EXPECT_EQ(limited.retry_after, base::seconds(17));
  EXPECT_THAT(ErrorOf(Ask({.code = 500, .body = "<html>oops"})), StatusIs(StatusCode::kUnavailable, HasSubstr("500")));
  EXPECT_THAT(ErrorOf(Ask({.code = 404})), StatusIs(StatusCode::kNotFound));
  EXPECT_THAT(ErrorOf(Ask({.body = good_, .fault = Fault::kTruncate})), StatusIs(StatusCode::kUnavailable));
  EXPECT_THAT(ErrorOf(Ask({.body = good_, .fault = Fault::kReset})), StatusIs(StatusCode::kUnavailable));
  EXPECT_THAT(ErrorOf(Ask({.body = good_.substr(0, good_.size() / 2)})), StatusIs(StatusCode::kInvalidArgument));
  EXPECT_THAT(ErrorOf(Ask({.body = ""})), StatusIs(StatusCode::kInvalidArgument));
  EXPECT_THAT(ErrorOf(Ask({.body = "<html><body>please sign in</body></html>"})),
              StatusIs(StatusCode::kInvalidArgument));
  EXPECT_THAT(ErrorOf(Ask({.fault = Fault::kHang}, "timeout: 200ms\n")), StatusIs(StatusCode::kDeadlineExceeded));
  EXPECT_THAT(ErrorOf(Ask({.body = std::string(size_t{2} << 20, ' ')}, "maxMegabytes: 1\n")),
              StatusIs(StatusCode::kResourceExhausted));
  const RefusingPort nobody;
  EXPECT_THAT(ErrorOf(AskAt(fmt::format("http://127.0.0.1:{}/", nobody.port()))), StatusIs(StatusCode::kUnavailable));
  EXPECT_FALSE(ErrorOf(AskAt("http://prices.invalid/", "connectTimeout: 2s\n")).ok());
  EXPECT_FALSE(ErrorOf(Ask({.code = 302, .headers = {{"Location", "file:///etc/passwd"}}})).ok());
}

TEST_P(PriceFaultsTest, ZeroIsNeverAPrice) {
  std::string zero = good_;
  for (const char* price : {"\"0.0382\"", "\"retailPrice\":1", "<spotPrice>1.000000<", "\"1.02\""}) {
    const size_t at = zero.find(price);
    if (at == std::string::npos) continue;
    std::string with = price;
    for (char& c : with) {
      if (c >= '1' && c <= '9') c = '0';
    }
    zero.replace(at, with.size(), with);
    break;
  }
  ASSERT_NE(zero, good_);
  const FetchResult result = Ask({.body = zero});
  for (const auto& [key, price] : Prices(result)) EXPECT_GT(price, 0) << key;
}

TEST_P(PriceFaultsTest, OurClockDoesNotMatter) {
  // The result does not depend on our clock, except for signatures (which the server does not check here).
  const ReplayServer server([&](const ReplayRequest&) { return ReplayReply{.body = good_}; });
  const FeedCase feed = FeedCases().at(GetParam());
  std::string yaml = feed.yaml;
  yaml.replace(yaml.find("ENDPOINT"), 8, server.url() + "/");
  const auto one = Make(feed.type, yaml);
  const auto before = Prices(one->Fetch(clock_.Now(), {}));
  const auto ahead = Prices(one->Fetch(clock_.Now() + std::chrono::hours(24 * 365), {}));
  const auto back = Prices(one->Fetch(clock_.Now() - std::chrono::hours(24 * 365), {}));
  EXPECT_EQ(before, ahead);
  EXPECT_EQ(before, back);
}

std::string FeedName(const testing::TestParamInfo<size_t>& one) {
  const std::vector<std::string> names = {"aws_spot_feed", "azure_retail", "aws_spot_history", "prometheus"};
  return names.at(one.param);
}
INSTANTIATE_TEST_SUITE_P(Feeds, PriceFaultsTest, testing::Range(size_t{0}, size_t{4}), FeedName);

TEST_F(PriceFeedsTest, AzureEndlessPagesEnd) {
  int number = 0;
  std::string base_url;
  const ReplayServer server([&](const ReplayRequest&) {
    return ReplayReply{.body =
                           AzureBody({{"Standard_A", "eastus", "1"}}, base_url + "/p" + std::to_string(++number % 7))};
  });
  base_url = server.url();
  const auto feed = Make("azure-retail", "endpoint: " + base_url + "/\nregions: [eastus]\n");
  EXPECT_THAT(ErrorOf(feed->Fetch(clock_.Now(), {})), StatusIs(StatusCode::kInvalidArgument, HasSubstr("read before")));
  EXPECT_LE(server.requests().size(), 9u);
}

TEST_F(PriceFeedsTest, AzureWithHalfOfTheSkusIsReportedUnchanged) {
  // A complete response with half of the prices: the feed reports it unchanged, and the catalog rejects it ("shrunk").
  std::vector<AzureItem> items;
  for (const auto& row : PriceRows("azure_on_demand.csv")) {
    if (row[1] == "eastus") items.push_back({.size = row[0], .region = row[1], .price = row[2]});
  }
  size_t count = items.size();
  const ReplayServer server([&](const ReplayRequest&) {
    return ReplayReply{.body = AzureBody({items.begin(), items.begin() + static_cast<std::ptrdiff_t>(count)}, "")};
  });
  const auto feed = Make("azure-retail", "endpoint: " + server.url() + "/\nregions: [eastus]\n");
  EXPECT_THAT(Prices(feed->Fetch(clock_.Now(), {})), SizeIs(items.size()));
  count /= 2;
  const FetchResult result = feed->Fetch(clock_.Now(), {});
  EXPECT_THAT(Prices(result), SizeIs(count));
  EXPECT_TRUE(std::get<Snapshot>(result.outcome).complete);
}

}  // namespace
}  // namespace medley::sched
