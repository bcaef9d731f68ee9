// Tests field paths in errors, bearer tokens and request IDs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/status.h"
#include "common/base/testing/status_matchers.h"
#include "scheduler-service/handlers/bearer_token.h"
#include "scheduler-service/handlers/field_path.h"
#include "scheduler-service/handlers/request_id.h"

namespace medley::sched {
namespace {

TEST(FieldPathTest, IsTheBeginningOfTheMessage) {
  EXPECT_EQ(FieldOf("model.layers[0].profiles[12].commParallel: must be in [0, 1], is 2"),
            "model.layers[0].profiles[12].commParallel");
  EXPECT_EQ(FieldOf("units: has 1 entries"), "units");
  EXPECT_EQ(FieldOf("Content-Type: must be"), "Content-Type");
  EXPECT_EQ(FieldOf("line 3, column 4: bad"), "");
  EXPECT_EQ(FieldOf("the document: must be an object"), "");
  EXPECT_EQ(FieldOf("3: x"), "");
  EXPECT_EQ(FieldOf("a[0: x"), "");
  EXPECT_EQ(FieldOf("a.: x"), "");
  EXPECT_EQ(FieldOf("a"), "");
  EXPECT_EQ(FieldOf(""), "");
}

TEST(FieldPathTest, WithinFieldPrefixesTheParent) {
  EXPECT_EQ(base::Message(WithinField("request", base::InvalidArgument("model.name: bad"))), "request.model.name: bad");
  EXPECT_EQ(base::Message(WithinField("request", base::InvalidArgument("no good"))), "request: no good");
  EXPECT_THAT(WithinField("request", absl::OkStatus()), base::IsOk());
}

TEST(BearerTokensTest, AllowsTheTokensOfTheFile) {
  const auto tokens = BearerTokens::Parse("0123456789abcdef\r\n\nfedcba9876543210");
  ASSERT_THAT(tokens, base::IsOk());
  EXPECT_TRUE(tokens->required());
  EXPECT_TRUE(tokens->Allow("Bearer 0123456789abcdef"));
  EXPECT_TRUE(tokens->Allow("bearer fedcba9876543210"));
  for (const char* bad : {"", "Bearer", "Bearer ", "0123456789abcdef", "Bearer 0123456789abcde",
                          "Bearer 0123456789abcdeF", "Bearer 0123456789abcdef ", "Basic 0123456789abcdef"}) {
    EXPECT_FALSE(tokens->Allow(bad)) << bad;
  }
  EXPECT_FALSE(tokens->FromOperator("Bearer 0123456789abcdef"));
  BearerTokens more = *tokens;
  more.SetOperator(*BearerTokens::Parse("the-operators-own"));
  EXPECT_TRUE(more.Allow("Bearer the-operators-own"));
  EXPECT_TRUE(more.Allow("Bearer 0123456789abcdef"));
  EXPECT_TRUE(more.FromOperator("Bearer the-operators-own"));
  EXPECT_FALSE(more.FromOperator("Bearer 0123456789abcdef"));
  EXPECT_TRUE(BearerTokens().Allow(""));
  EXPECT_FALSE(BearerTokens().FromOperator(""));
  for (const char* bad : {"", "\n", "short", "0123456789abc def0", "0123456789abcdef\x01"}) {
    EXPECT_THAT(BearerTokens::Parse(bad), base::StatusIs(absl::StatusCode::kInvalidArgument)) << bad;
  }
}

TEST(RequestIdsTest, KeepsAValidIdOfTheCaller) {
  RequestIds ids(7), others(8);
  EXPECT_EQ(ids.Choose("job-1.plan_2"), "job-1.plan_2");
  const std::string made = ids.Choose("two words");
  EXPECT_EQ(made.size(), 16u);
  EXPECT_NE(ids.Choose(""), made);
  EXPECT_NE(others.Choose(""), RequestIds(7).Choose(""));
  EXPECT_NE(ids.Choose(std::string(65, 'a')), std::string(65, 'a'));
}

}  // namespace
}  // namespace medley::sched
