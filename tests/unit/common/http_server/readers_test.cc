#include "common/http_server/readers.h"

#include <gmock/gmock.h>

#include <string>

#include "common/base/testing/status_matchers.h"

namespace medley::http_server {
namespace {

HttpRequest With(const std::string& authorization) {
  HttpRequest request;
  request.authorization = authorization;
  return request;
}

TEST(ReadersTest, OnlyWhoSendsATokenMayRead) {
  const std::string token = "0123456789abcdef";
  const auto readers = Readers::OfTokens(token + "\r\n\nanother-token-of-17\n");
  ASSERT_THAT(readers, base::IsOk());
  const std::pair<std::string, bool> cases[] = {
      {"Bearer " + token, true},
      {"bearer another-token-of-17", true},
      {"", false},
      {"Bearer", false},
      {"Bearer ", false},
      {token, false},
      {"Basic " + token, false},
      {"Bearer  " + token, false},
      {"Bearer " + token + " ", false},
      {"Bearer " + token.substr(1), false},
      {"Bearer " + token + "0", false},
      {"Bearer 0123456789ABCDEF", false},
      {"Bearer " + readers->digests(), false},
      {"Bearer " + readers->digests().substr(0, 64), false},
      {std::string("Bearer \0", 8) + token, false},
  };
  for (const auto& [authorization, allowed] : cases) {
    EXPECT_EQ(readers->Allow(With(authorization)), allowed) << authorization;
  }
  EXPECT_TRUE(Readers().Allow(With("")));
  EXPECT_EQ(Readers::Refusal().code, 401);
}

TEST(ReadersTest, DigestsSayNothingOfTheTokenAndAreEnough) {
  const auto readers = Readers::OfTokens("0123456789abcdef");
  ASSERT_THAT(readers, base::IsOk());
  // printf %s 0123456789abcdef | sha256sum
  EXPECT_EQ(readers->digests(), "9f9f5111f7b27a781f1f1ddde5ebc2dd2b796bfc7365c9c28b548e564176929f");
  const auto elsewhere = Readers::OfDigests(readers->digests());
  ASSERT_THAT(elsewhere, base::IsOk());
  EXPECT_TRUE(elsewhere->Allow(With("Bearer 0123456789abcdef")));
  EXPECT_FALSE(elsewhere->Allow(With("Bearer 0123456789abcdeg")));
  const auto everybody = Readers::OfDigests("");
  ASSERT_THAT(everybody, base::IsOk());
  EXPECT_TRUE(everybody->Allow(With("")));
}

// A file or a variable that is wrong must not open the page.
TEST(ReadersTest, RefusesInvalidTokens) {
  using testing::AllOf;
  using testing::HasSubstr;
  using testing::Not;
  for (const char* lines :
       {"", "\n\r\n", "short", "0123456789abcdef\nshort", "0123456789 abcdef", "0123456789abcde\xc3\xa9"}) {
    EXPECT_THAT(Readers::OfTokens(lines), base::StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("token")))
        << lines;
  }
  EXPECT_THAT(Readers::OfTokens("0123456789abcdef\nsecret"),
              base::StatusIs(absl::StatusCode::kInvalidArgument, AllOf(HasSubstr("line 2"), Not(HasSubstr("secret")))));
  for (const std::string& list :
       {std::string("x"), std::string(63, 'a'), std::string(64, 'A'), std::string(64, 'a') + ",,"}) {
    EXPECT_THAT(Readers::OfDigests(list), base::StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("64"))) << list;
  }
}

}  // namespace
}  // namespace medley::http_server
