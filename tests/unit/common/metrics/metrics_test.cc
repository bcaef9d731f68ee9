#include "common/metrics/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace medley::metrics {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(MetricsTest, TextHasHelpTypeLabelsAndValues) {
  Registry registry;
  registry.GetCounter("medley_plans_total", "Plans made", {{"result", "ok"}}).Increment(3);
  registry.GetGauge("medley_price_usd", "Price").Set(2.5);
  registry.GetHistogram("medley_plan_seconds", "Planning time", {0.1, 1}).Observe(0.5);
  const std::string text = registry.Text();
  EXPECT_THAT(text, HasSubstr("# HELP medley_plans_total Plans made\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE medley_plans_total counter\n"));
  EXPECT_THAT(text, HasSubstr("medley_plans_total{result=\"ok\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("medley_price_usd 2.5\n"));
  EXPECT_THAT(text, HasSubstr("medley_plan_seconds_bucket{le=\"0.1\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("medley_plan_seconds_bucket{le=\"1\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("medley_plan_seconds_count 1\n"));
}

TEST(MetricsTest, SameNameAndLabelsAreTheSameSeries) {
  Registry registry;
  Counter& a = registry.GetCounter("medley_x_total", "x", {{"a", "1"}});
  EXPECT_EQ(&a, &registry.GetCounter("medley_x_total", "x", {{"a", "1"}}));
  EXPECT_NE(&a, &registry.GetCounter("medley_x_total", "x", {{"a", "2"}}));
}

TEST(MetricsTest, RemovedGaugeCanBeCreatedAgain) {
  Registry registry;
  registry.GetGauge("medley_pool_units", "units", {{"pool", "a"}}).Set(7);
  registry.RemoveGauge("medley_pool_units", {{"pool", "a"}});
  registry.RemoveGauge("medley_pool_units", {{"pool", "never"}});
  EXPECT_THAT(registry.Text(), Not(HasSubstr("pool=\"a\"")));
  EXPECT_EQ(registry.GetGauge("medley_pool_units", "units", {{"pool", "a"}}).Value(), 0);
}

TEST(MetricsTest, ThreadsDoNotLoseIncrements) {
  Registry registry;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 1000; ++i) registry.GetCounter("medley_y_total", "y").Increment();
      });
    }
  }
  EXPECT_EQ(registry.GetCounter("medley_y_total", "y").Value(), 4000);
}

TEST(MetricsDeathTest, OneNameHasOneKind) {
  Registry registry;
  registry.GetCounter("medley_z", "z");
  EXPECT_DEATH(registry.GetGauge("medley_z", "z"), "check failed");
}

}  // namespace
}  // namespace medley::metrics
