#include "operator/lifecycle/limit_advice.h"

#include <gmock/gmock.h>

namespace medley::ops::lifecycle {
namespace {

using testing::HasSubstr;

constexpr char kWords[] = "needs 2 units of local, only 1 may be used: raise the limit of local to 2";

TEST(LimitAdviceTest, TheLimitItselfIsRaised) {
  EXPECT_EQ(WithLimitAdvice(kWords, "local", 2, 1, "spec.limit of pool local"),
            std::string(kWords) + " (bounded by spec.limit of pool local)");
}

// Issue 45: "raise the limit to 2", where it was 2.
TEST(LimitAdviceTest, ALimitThatIsNotTheBoundIsNotRaisedToWhatItIs) {
  EXPECT_EQ(
      WithLimitAdvice(kWords, "local", 2, 2, "free nodes of pool local"),
      "needs 2 units of local, only 1 may be used; bounded by free nodes of pool local, not by spec.limit of pool "
      "local, which is 2: a node has to have room for the units, and one of them besides for the coordinator "
      "(100m of CPU, 128Mi of memory): add nodes, or make spec.unit smaller");
  EXPECT_EQ(WithLimitAdvice(kWords, "local", 2, 2, "ResourceQuota q: pods"),
            "needs 2 units of local, only 1 may be used; bounded by ResourceQuota q: pods, not by spec.limit of pool "
            "local, which is 2: raise the quota, or make spec.unit smaller");
  EXPECT_EQ(WithLimitAdvice(kWords, "local", 2, 4, "what is free together with units of other pools"),
            "needs 2 units of local, only 1 may be used; bounded by what is free together with units of other pools, "
            "not by spec.limit of pool local, which is 4");
}

TEST(LimitAdviceTest, BothBoundsAreNamedWhereBothAreTooSmall) {
  EXPECT_THAT(WithLimitAdvice(kWords, "local", 9, 2, "free nodes of pool local"),
              HasSubstr("bounded by free nodes of pool local, and spec.limit of pool local is 2: "));
}

TEST(LimitAdviceTest, WordsWithoutAdviceGetTheBound) {
  EXPECT_EQ(WithLimitAdvice("limit of a: needed 9, available 4", "a", 9, 12, "nodes of a"),
            "limit of a: needed 9, available 4 (bounded by nodes of a)");
}

}  // namespace
}  // namespace medley::ops::lifecycle
