#include "kube/errors.h"

#include "common/base/testing/status_matchers.h"

namespace medley::kube {
namespace {

using base::StatusIs;
using testing::HasSubstr;

std::string Body(int code, const char* reason, const char* extra = "") {
  return fmt::format(R"({{"kind":"Status","message":"why","reason":"{}","code":{}{}}})", reason, code, extra);
}

TEST(ErrorsTest, CodesMap) {
  const std::vector<std::tuple<int, const char*, absl::StatusCode>> cases = {
      {409, "Conflict", absl::StatusCode::kAborted},
      {409, "AlreadyExists", absl::StatusCode::kAlreadyExists},
      {404, "NotFound", absl::StatusCode::kNotFound},
      {410, "Expired", absl::StatusCode::kOutOfRange},
      {422, "Invalid", absl::StatusCode::kInvalidArgument},
      {403, "Forbidden", absl::StatusCode::kPermissionDenied},
      {401, "Unauthorized", absl::StatusCode::kUnauthenticated},
      {429, "TooManyRequests", absl::StatusCode::kResourceExhausted},
      {500, "InternalError", absl::StatusCode::kUnavailable},
      {504, "Timeout", absl::StatusCode::kDeadlineExceeded}};
  for (const auto& [http, reason, code] : cases) {
    const absl::Status status = ErrorFromHttp(http, Body(http, reason), "get pods 'a/b'");
    EXPECT_THAT(status, StatusIs(code, HasSubstr("get pods 'a/b': why"))) << http;
    EXPECT_EQ(HttpCode(status), http);
    EXPECT_EQ(Reason(status), reason);
    EXPECT_EQ(IsConflict(status), code == absl::StatusCode::kAborted);
    EXPECT_EQ(IsAlreadyExists(status), code == absl::StatusCode::kAlreadyExists);
    EXPECT_EQ(IsGone(status), http == 410);
    EXPECT_EQ(IsTooManyRequests(status), http == 429);
  }
}

TEST(ErrorsTest, BodyThatIsNotAStatus) {
  const absl::Status status = ErrorFromHttp(503, "<html>", "x", std::chrono::seconds(7));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("<html>")));
  EXPECT_EQ(Reason(status), "ServiceUnavailable");
  EXPECT_EQ(RetryAfter(status), std::chrono::seconds(7));
  EXPECT_EQ(HttpCode(absl::OkStatus()), 0);
  EXPECT_EQ(HttpCode(base::Internal("x")), 0);
}

TEST(ErrorsTest, RetryAfterAndTooLargeFromDetails) {
  const absl::Status status = ErrorFromHttp(
      504,
      Body(504, "Timeout", R"(,"details":{"retryAfterSeconds":2,"causes":[{"reason":"ResourceVersionTooLarge"}]})"),
      "x");
  EXPECT_TRUE(IsTooLargeResourceVersion(status));
  EXPECT_EQ(RetryAfter(status), std::chrono::seconds(2));
  EXPECT_FALSE(IsTooLargeResourceVersion(ErrorFromHttp(504, Body(504, "Timeout"), "x")));
  EXPECT_TRUE(IsTooLargeResourceVersion(
      ErrorFromHttp(504, R"({"kind":"Status","message":"Too large resource version: 9, current: 3"})", "x")));
}

TEST(ErrorsTest, StatusObjectOfAWatch) {
  const Object object(Json::parse(Body(410, "Expired")));
  EXPECT_TRUE(IsGone(ErrorFromStatusObject(object, "watch")));
  EXPECT_EQ(HttpCode(ErrorFromStatusObject(Object(Json::array({1})), "watch")), 500);
}

TEST(ErrorsTest, ConnectionRefusedIsNotAnHttpError) {
  const absl::Status status = ConnectionRefused("watch pods");
  EXPECT_TRUE(IsConnectionRefused(status));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(HttpCode(status), 0);
}

}  // namespace
}  // namespace medley::kube
