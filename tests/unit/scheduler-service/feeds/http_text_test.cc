#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/testing/status_matchers.h"
#include "scheduler-service/feeds/aws_error.h"
#include "scheduler-service/feeds/http_fetcher.h"
#include "scheduler-service/feeds/parsed_prices.h"

namespace medley::sched {
namespace {

using absl::StatusCode;
using base::StatusIs;
using testing::HasSubstr;

TEST(HttpTextTest, OriginOfUrls) {
  EXPECT_EQ(Origin("https://Prices.Azure.com/api?x=1"), "https://prices.azure.com:443");
  EXPECT_EQ(Origin("http://127.0.0.1:9090"), "http://127.0.0.1:9090");
  EXPECT_EQ(Origin("http://[::1]/x"), "http://[::1]:80");
  EXPECT_EQ(Origin("http://[::1]:8080/x"), "http://[::1]:8080");
  // Whatever stands before '@' is no host.
  EXPECT_EQ(Origin("https://prices.azure.com@evil.example/"), "https://evil.example:443");
  EXPECT_EQ(Origin("https://prices.azure.com\\@evil.example/"), "");
  for (const char* url : {"", "prices.azure.com", "ftp://x/", "file:///etc/passwd", "https://", "http:///x"}) {
    EXPECT_EQ(Origin(url), "") << url;
  }
}

TEST(HttpTextTest, MessagesHaveNoSecretsOfUrls) {
  EXPECT_EQ(WithoutQuery("https://user:word@host/path?key=secret#x"), "https://host/path");
  EXPECT_EQ(WithoutQuery("https://host/a@b"), "https://host/a@b");
}

TEST(HttpTextTest, StatusOfReplies) {
  const auto code = [](int http) { return StatusOfReply({.code = http, .body = "why\nnot"}, "prices").code(); };
  EXPECT_EQ(code(200), StatusCode::kOk);
  EXPECT_EQ(code(304), StatusCode::kOk);
  EXPECT_EQ(code(302), StatusCode::kPermissionDenied);
  EXPECT_EQ(code(400), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(401), StatusCode::kUnauthenticated);
  EXPECT_EQ(code(403), StatusCode::kPermissionDenied);
  EXPECT_EQ(code(404), StatusCode::kNotFound);
  EXPECT_EQ(code(429), StatusCode::kResourceExhausted);
  EXPECT_EQ(code(500), StatusCode::kUnavailable);
  EXPECT_THAT(StatusOfReply({.code = 500, .body = "why\nnot"}, "prices"),
              StatusIs(StatusCode::kUnavailable, "prices: HTTP 500: why not"));
}

TEST(AwsErrorTest, CodesOfEc2AndSts) {
  const auto of = [](int http, const std::string& body) { return StatusOfAwsReply({.code = http, .body = body}, "x"); };
  const auto ec2 = [](const std::string& code) {
    return "<?xml version=\"1.0\"?>\n<Response><Errors><Error><Code>" + code +
           "</Code><Message>said so</Message></Error></Errors><RequestID>r</RequestID></Response>";
  };
  EXPECT_THAT(of(403, ec2("UnauthorizedOperation")),
              StatusIs(StatusCode::kPermissionDenied, "x: UnauthorizedOperation: said so"));
  EXPECT_THAT(of(401, ec2("AuthFailure")), StatusIs(StatusCode::kUnauthenticated));
  EXPECT_THAT(of(400, ec2("RequestExpired")), StatusIs(StatusCode::kUnauthenticated));
  EXPECT_THAT(of(503, ec2("RequestLimitExceeded")), StatusIs(StatusCode::kResourceExhausted));
  EXPECT_THAT(of(400, ec2("InvalidParameterValue")), StatusIs(StatusCode::kInvalidArgument));
  EXPECT_THAT(of(400,
                 "<ErrorResponse><Error><Type>Sender</Type><Code>ExpiredTokenException</Code>"
                 "<Message>m</Message></Error></ErrorResponse>"),
              StatusIs(StatusCode::kUnauthenticated, "x: ExpiredTokenException: m"));
  EXPECT_THAT(of(502, "<html>bad gateway"), StatusIs(StatusCode::kUnavailable, HasSubstr("HTTP 502")));
  EXPECT_THAT(of(200, ""), base::IsOk());
}

TEST(ParsedPricesTest, RegionsOfZones) {
  EXPECT_EQ(AwsRegionOfZone("us-east-1b"), "us-east-1");
  EXPECT_EQ(AwsRegionOfZone("us-gov-east-1a"), "us-gov-east-1");
  EXPECT_EQ(AwsRegionOfZone("us-west-2-lax-1a"), "us-west-2");
  EXPECT_EQ(AwsRegionOfZone("us-east-1-wl1-bos-wlz-1"), "us-east-1");
  EXPECT_EQ(AwsRegionOfZone("us-east-1"), "us-east-1");
  for (const char* zone : {"", "us", "us-", "us-east", "useast1", "US-EAST-1", "us-east-1/", "use1-az4", "-1", "1a"}) {
    EXPECT_EQ(AwsRegionOfZone(zone), "") << zone;
  }
}

}  // namespace
}  // namespace medley::sched
