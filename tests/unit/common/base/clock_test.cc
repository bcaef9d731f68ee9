#include "common/base/clock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "common/base/backoff.h"
#include "common/base/testing/fake_clock.h"
#include "common/base/testing/status_matchers.h"

namespace medley::base {
namespace {

TEST(ClockTest, TimesRoundTrip) {
  const WallTime time = *ParseTime("2026-11-21T07:15:00Z");
  EXPECT_EQ(FormatTime(time), "2026-11-21T07:15:00Z");
  EXPECT_EQ(FormatTimeMicro(time), "2026-11-21T07:15:00.000000Z");
  EXPECT_EQ(*ParseTime("2026-11-21T08:15:00+01:00"), time);
  EXPECT_THAT(ParseTime("yesterday"), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(ClockTest, ParsesGoDurations) {
  EXPECT_EQ(*ParseDuration("1h30m"), std::chrono::minutes(90));
  EXPECT_EQ(*ParseDuration("300ms"), milliseconds(300));
  EXPECT_THAT(ParseDuration("-1s"), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ParseDuration("5"), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(ClockTest, FakeClockWakesSleepersAtTheirDeadline) {
  FakeClock clock;
  bool reached = false;
  std::jthread sleeper([&](std::stop_token stop) { reached = clock.SleepFor(seconds(5), stop); });
  ASSERT_TRUE(clock.WaitForSleepers(1));
  clock.Advance(seconds(5));
  sleeper.join();
  EXPECT_TRUE(reached);
}

// A sleeper that has been woken but has not run yet must not be taken for one that sleeps again.
TEST(ClockTest, FakeClockWaitsForNewSleepersOnly) {
  FakeClock clock;
  std::atomic<int> slept = 0;
  std::jthread sleeper([&](std::stop_token stop) {
    while (clock.SleepFor(seconds(1), stop)) ++slept;
  });
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(clock.WaitForSleepers(1));
    ASSERT_EQ(slept, i);
    clock.Advance(seconds(1));
  }
}

TEST(ClockTest, SleepEndsWhenStopped) {
  SystemClock clock;
  bool reached = true;
  std::jthread sleeper([&](std::stop_token stop) { reached = clock.SleepFor(seconds(3600), stop); });
  sleeper.request_stop();
  sleeper.join();
  EXPECT_FALSE(reached);
}

TEST(BackoffTest, GrowsToTheCapWithinJitterAndResets) {
  Backoff backoff({.first = milliseconds(100), .max = seconds(1), .factor = 2, .jitter = 0.2}, 7);
  double expected = 0.1;
  for (int i = 0; i < 10; ++i) {
    const double wait = ToSeconds(backoff.Next());
    EXPECT_GE(wait, expected * 0.8 - 1e-9);
    EXPECT_LE(wait, expected * 1.2 + 1e-9);
    expected = std::min(1.0, expected * 2);
  }
  backoff.Reset();
  EXPECT_LE(ToSeconds(backoff.Next()), 0.12);
}

}  // namespace
}  // namespace medley::base
