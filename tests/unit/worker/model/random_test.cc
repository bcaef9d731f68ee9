#include "worker/model/random.h"

#include <gtest/gtest.h>

#include <vector>

namespace medley::worker {
namespace {

// The known answers of the authors' Random123 library for philox4x32 with 10 rounds.
TEST(PhiloxTest, KnownAnswers) {
  EXPECT_EQ(Philox({0, 0, 0, 0}, {0, 0}), (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (std::array<uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(DropoutMaskTest, KeepsAboutAsManyAsItShouldAndScalesThem) {
  constexpr size_t kCount = 100'001;
  for (const double keep : {0.1, 0.5, 0.9}) {
    std::vector<float> mask(kCount);
    DropoutMask({.seed = 5, .call = 3, .step = 2, .sample = 1}, keep, mask);
    double kept = 0;
    for (const float value : mask) {
      ASSERT_TRUE(value == 0 || value == static_cast<float>(1 / keep));
      kept += value != 0 ? 1 : 0;
    }
    EXPECT_NEAR(kept / kCount, keep, 5 * std::sqrt(keep * (1 - keep) / kCount));
  }
}

TEST(DropoutMaskTest, EverySampleStepAndCallHasItsOwn) {
  const Draw draw{.seed = 5, .call = 3, .step = 2, .sample = 1};
  const auto mask = [](const Draw& of) {
    std::vector<float> values(64);
    DropoutMask(of, 0.5, values);
    return values;
  };
  EXPECT_EQ(mask(draw), mask(draw));
  for (const Draw& other : {Draw{6, 3, 2, 1}, Draw{5, 4, 2, 1}, Draw{5, 3, 3, 1}, Draw{5, 3, 2, 2}}) {
    EXPECT_NE(mask(draw), mask(other));
  }
}

}  // namespace
}  // namespace medley::worker
