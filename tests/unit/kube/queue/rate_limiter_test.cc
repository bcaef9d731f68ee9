#include "kube/queue/rate_limiter.h"

#include <gtest/gtest.h>

#include "common/base/testing/fake_clock.h"

namespace medley::kube {
namespace {

using base::milliseconds;
using base::nanoseconds;
using base::seconds;

TEST(RateLimiterTest, TestItemExponentialFailureRateLimiter) {
  ExponentialRateLimiter limiter(milliseconds(1), seconds(1));
  const Key one{"", "one"};
  const Key two{"", "two"};
  for (const int wait : {1, 2, 4, 8, 16}) EXPECT_EQ(limiter.When(one), milliseconds(wait));
  EXPECT_EQ(limiter.Requeues(one), 5);
  EXPECT_EQ(limiter.When(two), milliseconds(1));
  limiter.Forget(one);
  EXPECT_EQ(limiter.Requeues(one), 0);
  EXPECT_EQ(limiter.When(one), milliseconds(1));
}

TEST(RateLimiterTest, TestItemExponentialFailureRateLimiterOverFlow) {
  ExponentialRateLimiter limiter(milliseconds(1), seconds(1000));
  const Key key{"", "one"};
  for (int i = 0; i < 5; ++i) limiter.When(key);
  EXPECT_EQ(limiter.When(key), milliseconds(32));
  for (int i = 0; i < 2000; ++i) limiter.When(key);  // 2^2000 does not fit a double
  EXPECT_EQ(limiter.When(key), seconds(1000));
}

TEST(RateLimiterTest, D4_BucketAllowsABurstThenARate) {
  base::FakeClock clock;
  BucketRateLimiter limiter(clock, 10, 100);
  const Key key{"", "a"};
  for (int i = 0; i < 100; ++i) ASSERT_EQ(limiter.When(key), nanoseconds(0)) << i;
  EXPECT_NEAR(base::ToSeconds(limiter.When(key)), 0.1, 1e-9);
  EXPECT_NEAR(base::ToSeconds(limiter.When(key)), 0.2, 1e-9);
  clock.Advance(seconds(1));
  EXPECT_EQ(limiter.When(key), nanoseconds(0));
}

TEST(RateLimiterTest, TestMaxOfRateLimiter) {
  base::FakeClock clock;
  const auto limiter = DefaultRateLimiter(clock);
  const Key key{"", "a"};
  EXPECT_EQ(limiter->When(key), milliseconds(5));
  EXPECT_EQ(limiter->When(key), milliseconds(10));
  for (int i = 0; i < 98; ++i) limiter->When({"", std::to_string(i)});
  EXPECT_NEAR(base::ToSeconds(limiter->When({"", "new"})), 0.1, 1e-9);  // the bucket's wait is the longest
  EXPECT_EQ(limiter->Requeues(key), 2);
  limiter->Forget(key);
  EXPECT_EQ(limiter->Requeues(key), 0);
}

}  // namespace
}  // namespace medley::kube
