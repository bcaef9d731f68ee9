#include "common/base/closest.h"

#include <gtest/gtest.h>

namespace medley::base {
namespace {

TEST(ClosestTest, FindsTyposOfEveryKind) {
  const std::vector<std::string> fields = {"model", "data", "training", "objective", "checkpoint", "epochs"};
  EXPECT_EQ(Closest("objectives", fields), "objective");
  EXPECT_EQ(Closest("epochz", fields), "epochs");
  EXPECT_EQ(Closest("eopchs", fields), "epochs");
  EXPECT_EQ(Closest("checkPoint", fields), "checkpoint");
  EXPECT_EQ(Closest("traning", fields), "training");
}

TEST(ClosestTest, FindsNothingForADifferentWord) {
  EXPECT_EQ(Closest("hyperparameters", {"model", "data"}), "");
  EXPECT_EQ(Closest("x", {"y"}), "");
  EXPECT_EQ(Closest("", {"a"}), "");
  EXPECT_EQ(Closest(std::string(65, 'a'), {std::string(65, 'a')}), "");
  EXPECT_EQ(Closest("tpo", {}), "");
}

TEST(ClosestTest, TheFirstOfEquallyCloseWordsWins) {
  EXPECT_EQ(Closest("tpo", {"top", "tp", "too"}), "top");
  EXPECT_EQ(Closest("Yes", {"no", "yes"}), "yes");
}

TEST(ClosestTest, AsksTheUser) {
  EXPECT_EQ(DidYouMean("objectives", {"objective"}), "; did you mean `objective`?");
  EXPECT_EQ(DidYouMean("colour", {"objective"}), "");
}

}  // namespace
}  // namespace medley::base
