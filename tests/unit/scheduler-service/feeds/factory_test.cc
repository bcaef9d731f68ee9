#include "scheduler-service/feeds/factory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/testing/status_matchers.h"
#include "scheduler-service/feeds/testing/fake_fetcher.h"

namespace medley::sched {
namespace {

using absl::StatusCode;
using base::StatusIs;
using testing::HasSubstr;

class FactoryTest : public testing::Test {
 protected:
  // The catalog has already read "type" and "name", so the text does not contain them.
  absl::StatusOr<std::unique_ptr<Feed>> Make(const std::string& type, const std::string& yaml) {
    auto node = document::Reader::Parse("# YAML\n" + yaml);  // the comment prevents parsing as JSON
    if (!node.ok()) return node.status();
    return factories_.at(type)("mine", *std::move(node));
  }
  void Refused(const std::string& type, const std::string& yaml, const std::string& why) {
    const auto feed = Make(type, yaml);
    EXPECT_THAT(feed.status(), StatusIs(StatusCode::kInvalidArgument, HasSubstr(why))) << yaml;
  }

  HttpOptions http_;
  std::vector<FetchRequest> requests_;
  FeedFactories factories_ = HttpFeedFactories(
      [this](HttpOptions options) {
        http_ = std::move(options);
        return std::make_unique<FakeFetcher>([](const FetchRequest&) { return base::Unavailable("no network"); },
                                             requests_);
      },
      [](const std::string& name) { return std::string(name == "AWS_REGION" ? "eu-west-1" : ""); });
};

TEST_F(FactoryTest, Defaults) {
  const auto azure = Make("azure-retail", "regions: [eastus]");
  ASSERT_THAT(azure, base::IsOk());
  EXPECT_EQ((*azure)->name(), "mine");
  EXPECT_EQ((*azure)->traits().period, std::chrono::hours(6));
  EXPECT_EQ(http_.max_body_bytes, size_t{64} << 20);
  EXPECT_FALSE(http_.proxy_from_environment);
  ASSERT_THAT(Make("aws-spot-feed", "{}"), base::IsOk());
  ASSERT_THAT(Make("aws-spot-history", "regions: [us-east-1]"), base::IsOk());
  ASSERT_THAT(Make("prometheus", "endpoint: http://prometheus:9090"), base::IsOk());
}

TEST_F(FactoryTest, EverythingSet) {
  ASSERT_THAT(Make("prometheus",
                   "endpoint: https://prometheus/prefix\nkarpenter: true\nopencost: false\nprovider: aws\n"
                   "region: us-east-1\ninstanceTypes: [p3.*]\ntimeout: 10s\nconnectTimeout: "
                   "2s\nmaxMegabytes: 8\n"
                   "caFile: /ca.pem\ntokenFile: /token\nproxy: http://proxy:3128"),
              base::IsOk());
  EXPECT_EQ(http_.total_timeout, std::chrono::seconds(10));
  EXPECT_EQ(http_.connect_timeout, std::chrono::seconds(2));
  EXPECT_EQ(http_.max_body_bytes, size_t{8} << 20);
  EXPECT_EQ(http_.ca_file, "/ca.pem");
  EXPECT_EQ(http_.bearer_token_file, "/token");
  EXPECT_EQ(http_.proxy, "http://proxy:3128");
  ASSERT_THAT(Make("aws-spot-history",
                   "regions: [us-east-1]\nproducts: [Linux/UNIX]\nendpoint: 'http://localhost/{region}'\n"
                   "credentials: web-identity\nroleArn: arn\nwebIdentityTokenFile: /t\nroleSessionName: s\n"
                   "stsEndpoint: http://localhost\nmaxPages: 3"),
              base::IsOk());
  ASSERT_THAT(Make("aws-spot-history", "documents: ['http://files/x.json']"), base::IsOk());
}

TEST_F(FactoryTest, ErrorsNameTheField) {
  Refused("prometheus", "{}", "endpoint: is required");
  Refused("prometheus", "endpoint: prometheus:9090", "endpoint: must be an absolute http or https URL");
  Refused("prometheus", "{endpoint: 'http://p', karpenter: false, opencost: false}",
          "karpenter: must be true if opencost is false");
  Refused("prometheus", "{endpoint: 'http://p', endpiont: x}", "endpiont");
  Refused("prometheus", "{endpoint: 'http://p', timeout: 0s}", "timeout");
  Refused("prometheus", "{endpoint: 'http://p', maxMegabytes: 65}", "maxMegabytes: must be between 1 and 64");
  Refused("prometheus", "{endpoint: 'http://p', proxy: 'http://q', proxyFromEnvironment: true}",
          "proxy: must not be set together with");
  Refused("azure-retail", "{}", "regions: is required");
  Refused("azure-retail", "regions: [\"east' or 1 eq 1\"]", "is not a region");
  Refused("azure-retail", "{regions: [eastus], maxPages: 0}", "maxPages");
  Refused("aws-spot-history", "{}", "regions: is required");
  Refused("aws-spot-history", "{regions: [us-east-1], credentials: magic}", "credentials: must be auto");
  Refused("aws-spot-history", "{regions: [us-east-1], tokenFile: /t}", "tokenFile: must not be set");
  Refused("aws-spot-history", "{regions: [us-east-1], endpoint: 'http://x/?a'}", "endpoint: must not have a query");
  Refused("aws-spot-feed", "endpoint: ftp://x", "endpoint: must be an absolute");
}

TEST_F(FactoryTest, StsEndpointIsInTheClustersRegion) {
  const auto feed = Make("aws-spot-history",
                         "regions: [us-east-1]\ncredentials: web-identity\nroleArn: a\n"
                         "webIdentityTokenFile: /dev/null");
  ASSERT_THAT(feed, base::IsOk());
  (*feed)->Fetch(base::WallTime(), {});
  ASSERT_EQ(requests_.size(), 1u);
  EXPECT_EQ(requests_[0].url, "https://sts.eu-west-1.amazonaws.com/");
}

}  // namespace
}  // namespace medley::sched
