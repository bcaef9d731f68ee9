#include "common/base/quantity.h"

#include <gtest/gtest.h>

#include "common/base/testing/status_matchers.h"

namespace medley::base {
namespace {

TEST(QuantityTest, ParsesEverySuffix) {
  EXPECT_DOUBLE_EQ(*ParseQuantity("500m"), 0.5);
  EXPECT_DOUBLE_EQ(*ParseQuantity("16Gi"), 16.0 * 1024 * 1024 * 1024);
  EXPECT_DOUBLE_EQ(*ParseQuantity("1e3"), 1000);
  EXPECT_DOUBLE_EQ(*ParseQuantity("1E"), 1e18);
  EXPECT_DOUBLE_EQ(*ParseQuantity("2.42"), 2.42);
  EXPECT_DOUBLE_EQ(*ParseQuantity(".5"), 0.5);
  EXPECT_DOUBLE_EQ(*ParseQuantity("-3k"), -3000);
}

TEST(QuantityTest, RefusesWhatKubernetesRefuses) {
  for (const char* text : {"", "m", "1 Gi", "1gi", "inf", "nan", "1e", "0x10", "--1", "1e999", "5 USD"}) {
    EXPECT_THAT(ParseQuantity(text), StatusIs(absl::StatusCode::kInvalidArgument)) << text;
  }
}

TEST(QuantityTest, BytesRoundUpAndRefuseNegatives) {
  EXPECT_EQ(*ParseBytes("1500m"), 2);
  EXPECT_THAT(ParseBytes("-1"), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ParseBytes("100E"), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(QuantityTest, FormatsWithoutTrailingZeros) {
  EXPECT_EQ(FormatDecimal(2.42, 4), "2.42");
  EXPECT_EQ(FormatDecimal(5, 2), "5");
  EXPECT_EQ(FormatDecimal(0.03454, 4), "0.0345");
  EXPECT_EQ(FormatDecimal(-0.00001, 2), "0");
}

}  // namespace
}  // namespace medley::base
