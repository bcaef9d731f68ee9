#include "common/model/allreduce.h"

#include <gtest/gtest.h>

namespace medley::model {
namespace {

using enum AllreduceAlgorithm;

TEST(AllreduceSecondsTest, CountsRoundsAndBytes) {
  const LinkSpeed link{1, 10};  // a second a message, and a second for ten bytes
  EXPECT_DOUBLE_EQ(AllreduceSeconds(kRing, 4, link, 40), 6 * (1 + 1));
  EXPECT_DOUBLE_EQ(AllreduceSeconds(kAuto, 4, link, 40), 6 * (1 + 1));
  EXPECT_DOUBLE_EQ(AllreduceSeconds(kRecursiveDoubling, 4, link, 40), 2 * (1 + 4));
  EXPECT_DOUBLE_EQ(AllreduceSeconds(kRecursiveDoubling, 5, link, 40), 4 * (1 + 4));  // a round before, one after
  EXPECT_DOUBLE_EQ(AllreduceSeconds(kCentralized, 4, link, 40), 2 * (1 + 12));
  EXPECT_DOUBLE_EQ(AllreduceSeconds(kLinear, 4, link, 40), 6 * (1 + 4));
  EXPECT_DOUBLE_EQ(AllreduceSeconds(kLinear, 4, {1, 0}, 40), 6);  // no limit of bytes
  for (const auto algorithm : {kAuto, kRing, kRecursiveDoubling, kCentralized, kLinear}) {
    EXPECT_EQ(AllreduceSeconds(algorithm, 1, link, 40), 0);
  }
}

TEST(AllreduceRulesTest, ChooseWhatIsFasterUpToTheBound) {
  for (int members = 2; members <= 64; ++members) {
    for (const LinkSpeed link : {kUnmeasuredLink, LinkSpeed{1e-6, 1e10}, LinkSpeed{0.01, 1e6}, LinkSpeed{0, 1e9}}) {
      const auto rules = AllreduceRules(members, link);
      for (int64_t bytes = 1024; bytes <= 1 << 28; bytes *= 2) {
        const auto size = static_cast<double>(bytes);
        const bool doubled =
            AllreduceSeconds(kRecursiveDoubling, members, link, size) <= AllreduceSeconds(kRing, members, link, size);
        EXPECT_EQ(ChooseAllreduce(rules, members, bytes) == kRecursiveDoubling, doubled && bytes <= 256 << 10)
            << members << " members, " << bytes << " bytes";
      }
    }
  }
  EXPECT_TRUE(AllreduceRules(1, kUnmeasuredLink).empty());
  EXPECT_TRUE(AllreduceRules(0, kUnmeasuredLink).empty());
}

TEST(ChooseAllreduceTest, TakesTheSmallestSufficientSize) {
  const std::vector<AlgorithmRule> rules = {{2, 100, kLinear}, {2, 10, kCentralized}, {3, 10, kAuto}};
  EXPECT_EQ(ChooseAllreduce(rules, 2, 10), kCentralized);
  EXPECT_EQ(ChooseAllreduce(rules, 2, 11), kLinear);
  EXPECT_EQ(ChooseAllreduce(rules, 2, 101), kRing);
  EXPECT_EQ(ChooseAllreduce(rules, 3, 1), kRing);
  EXPECT_EQ(ChooseAllreduce({}, 2, 1), kRing);
}

}  // namespace
}  // namespace medley::model
