#include "common/object_store/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/status.h"
#include "common/base/testing/fake_clock.h"
#include "common/base/testing/status_matchers.h"

namespace medley::object_store {
namespace {

using base::StatusIs;
using testing::HasSubstr;

http_client::Result Answer(int code, const std::string& error = "", http_client::Headers headers = {}) {
  http_client::Result result;
  result.response = {code, std::move(headers),
                     error.empty() ? "" : "<Error><Code>" + error + "</Code><Message>why</Message></Error>"};
  return result;
}

Verdict Of(const http_client::Result& result, bool content = false) {
  const base::FakeClock clock;
  return Judge(result, "reading s3://bucket/key", "THE_KEYS", content, clock);
}

TEST(VerdictTest, StormsAreWorthAnotherTry) {
  for (const int code : {408, 429, 500, 502, 503, 504}) {
    EXPECT_TRUE(Of(Answer(code, "SlowDown")).retry) << code;
    EXPECT_THAT(Of(Answer(code)).status, StatusIs(absl::StatusCode::kUnavailable)) << code;
  }
  http_client::Result broken;
  broken.status = base::Unavailable("broken");
  EXPECT_TRUE(Of(broken).retry);
  broken.status = base::DeadlineExceeded("silent");
  EXPECT_TRUE(Of(broken).retry);
}

TEST(VerdictTest, AServerSaysHowLongToWaitButNotForHours) {
  EXPECT_EQ(Of(Answer(503, "", {{"Retry-After", "7"}})).wait, base::seconds(7));
  EXPECT_EQ(Of(Answer(503, "", {{"Retry-After", "86400"}})).wait, kMostRetryAfter);
  EXPECT_EQ(Of(Answer(503, "", {{"Retry-After", "soon"}})).wait, std::nullopt);
}

TEST(VerdictTest, WhatStaysWrongIsASentenceAtOnce) {
  const auto fails = [](const http_client::Result& result, absl::StatusCode code, const std::string& text) {
    const Verdict verdict = Of(result);
    EXPECT_FALSE(verdict.retry) << text;
    EXPECT_THAT(verdict.status, StatusIs(code)) << text;
    EXPECT_THAT(base::Message(verdict.status), HasSubstr("reading s3://bucket/key: "));
    EXPECT_THAT(base::Message(verdict.status), HasSubstr(text));
  };
  using absl::StatusCode;
  fails(Answer(403, "SignatureDoesNotMatch"), StatusCode::kPermissionDenied, "THE_KEYS: SignatureDoesNotMatch: why");
  fails(Answer(400, "ExpiredToken"), StatusCode::kPermissionDenied, "ExpiredToken");
  fails(Answer(401), StatusCode::kPermissionDenied, "HTTP 401");
  fails(Answer(403, "RequestTimeTooSkewed"), StatusCode::kPermissionDenied, "clock of this machine");
  fails(Answer(404, "NoSuchBucket"), StatusCode::kNotFound, "the bucket does not exist");
  fails(Answer(404), StatusCode::kNotFound, "it does not exist");
  fails(Answer(507), StatusCode::kResourceExhausted, "the store has no room: HTTP 507");
  fails(Answer(403, "QuotaExceeded"), StatusCode::kResourceExhausted, "the store has no room: QuotaExceeded");
  fails(Answer(412), StatusCode::kFailedPrecondition, "changed");
  fails(Answer(301, "PermanentRedirect", {{"x-amz-bucket-region", "eu-west-1"}}), StatusCode::kFailedPrecondition,
        "region 'eu-west-1'");
  fails(Answer(307, "", {{"Location", "https://evil/"}}), StatusCode::kPermissionDenied, "redirects");
  fails(Answer(400, "InvalidRequest"), StatusCode::kInvalidArgument, "InvalidRequest");
}

TEST(VerdictTest, AnErrorCanComeWithTheCode200) {
  EXPECT_TRUE(Of(Answer(200, "InternalError")).retry);
  EXPECT_THAT(Of(Answer(200, "InvalidPart")).status, StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_TRUE(Of(Answer(200)).status.ok());
}

TEST(VerdictTest, TheContentOfAnObjectIsNotTakenForAnError) {
  EXPECT_TRUE(Of(Answer(206, "InternalError"), true).status.ok());
  EXPECT_TRUE(Of(Answer(503, "InternalError"), true).retry);
}

}  // namespace
}  // namespace medley::object_store
