#include "common/base/figure.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace medley::base {
namespace {

TEST(FigureTest, HasNoExponentAtAnySize) {
  const struct {
    double value;
    const char* text;
  } kCases[] = {{1e12, "1,000,000,000,000"},
                {23100, "23,100"},
                {1000, "1,000"},
                {999.96, "1,000"},
                {999.4, "999.4"},
                {2.58, "2.58"},
                {2, "2"},
                {0.1, "0.1"},
                {1.5e-7, "0.00000015"},
                {0, "0"},
                {-0.0, "0"},
                {-1234567, "-1,234,567"},
                {-2.5, "-2.5"},
                {1.0 / 3, "0.3333"}};
  for (const auto& each : kCases) EXPECT_EQ(Figure(each.value), each.text) << each.value;
  for (int power = -12; power <= 18; ++power) {
    EXPECT_EQ(Figure(std::pow(10.0, power)).find('e'), std::string::npos) << power;
  }
  EXPECT_EQ(Figure(std::numeric_limits<double>::quiet_NaN()), "unknown");
  EXPECT_EQ(Figure(std::numeric_limits<double>::infinity()), "unknown");
  EXPECT_EQ(Figure(3.14159, 2), "3.1");
}

}  // namespace
}  // namespace medley::base
