#include "operator/recommend/choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <limits>

#include "common/base/rng.h"
#include "tests/unit/operator/recommend/jobs.h"

namespace medley::ops::recommend {
namespace {

using testing::HasSubstr;

ForeignJob TrainJob(std::optional<int> nodes = std::nullopt) {
  ForeignJob job;
  job.kind = ForeignKind::kTrainJob;
  job.sizable = true;
  job.nodes = nodes;
  return job;
}

Ask AskFor(std::map<std::string, PoolSpeed> speeds) {
  Ask ask;
  for (const auto& [pool, speed] : speeds) ask.pools.push_back(pool);
  ask.speeds = std::move(speeds);
  ask.samples = 3600 * 1000;
  return ask;
}

TEST(ChoiceTest, TheCheapestWithinTheDeadlineIsChosen) {
  Ask ask = AskFor({{"gpu", {.of_one = 1000, .measured = {}}}, {"cpu", {.of_one = 100, .measured = {}}}});
  const std::vector<NodeOffer> offers = {{"gpu", 8, 2}, {"cpu", 100, 0.1}};
  Chosen chosen = Choose(ask, TrainJob(), offers);
  ASSERT_TRUE(chosen.choice);
  EXPECT_EQ(chosen.choice->pool, "cpu");  // 1 USD, against 2 USD
  EXPECT_EQ(chosen.choice->nodes, 1);
  ask.bounds.deadline_seconds = 360;  // 10 gpus are not free, 100 cpus are
  chosen = Choose(ask, TrainJob(), offers);
  ASSERT_TRUE(chosen.choice);
  EXPECT_EQ(chosen.choice->pool, "cpu");
  EXPECT_EQ(chosen.choice->nodes, 100);
  EXPECT_EQ(chosen.choice->InWords(), "100 nodes of pool cpu: 10,000 samples/s, 10 USD/h, 1 USD in all");
  ask.bounds.deadline_seconds = 300;
  chosen = Choose(ask, TrainJob(), offers);
  EXPECT_FALSE(chosen.choice);
  EXPECT_EQ(chosen.why_not, "deadline: 300 s are allowed, 100 nodes of pool cpu need 360 s");
}

TEST(ChoiceTest, WhatTheJobSaysStays) {
  const Ask ask = AskFor({{"gpu", {.of_one = 1000, .measured = {}}}, {"cpu", {.of_one = 100, .measured = {}}}});
  EXPECT_EQ(Choose(ask, TrainJob(4), {{"gpu", 8, 2}}).choice->nodes, 4);
  EXPECT_EQ(Choose(ask, TrainJob(9), {{"gpu", 8, 2}}).why_not, "limit of pool gpu: 9 nodes needed, 8 free");
  ForeignJob job = TrainJob(2);
  job.node_selector = {{"zone", "a"}};
  NodeOffer other{"gpu", 8, 2};
  other.node_selector = {{"zone", "b"}};
  EXPECT_THAT(Choose(ask, job, {other}).why_not, HasSubstr("the job's own nodeSelector asks for zone: a"));
  Ask sizes = ask;
  sizes.sizes = {1, 2};
  job.sizable = false;
  job.kind = ForeignKind::kJobSet;
  EXPECT_THAT(Choose(sizes, job, {{"gpu", 8, 2}}).why_not, HasSubstr("the number of pods of a JobSet cannot change"));
}

TEST(ChoiceTest, OnlyMeasuredSizesAreChosenWhereSizesAreMeasured) {
  Ask ask = AskFor({{"gpu", {.of_one = 0, .measured = {{2, 1800}, {8, 5000}}}}});
  ask.bounds.min_throughput = 2000;
  EXPECT_EQ(Choose(ask, TrainJob(), {{"gpu", 8, 2}}).choice->nodes, 8);
  EXPECT_THAT(Choose(ask, TrainJob(4), {{"gpu", 8, 2}}).why_not, HasSubstr("no samples/s of the sizes"));
}

TEST(ChoiceTest, SaysWhyAPoolCannotBeUsed) {
  const Ask ask = AskFor({{"gpu", {.of_one = 1000, .measured = {}}}});
  EXPECT_EQ(Choose(ask, TrainJob(), {{"cpu", 8, 2}}).why_not, "no pool of those named exists and may be used here");
  EXPECT_EQ(Choose(ask, TrainJob(), {{"gpu", 8, 0}}).why_not, "pool gpu: has no price");
  NodeOffer away{"gpu", 8, 2};
  away.unavailable = "no offering is available";
  EXPECT_EQ(Choose(ask, TrainJob(), {away}).why_not, "pool gpu: no offering is available");
  EXPECT_EQ(Choose(ask, TrainJob(), {{"gpu", 0, 2}}).why_not, "limit of pool gpu: 1 node needed, 0 free");
}

// Against all pools and sizes, one after the other.
TEST(ChoiceTest, NothingThatFitsIsBetter) {
  int feasible = 0;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    base::Rng rng(seed);
    Ask ask;
    std::vector<NodeOffer> offers;
    for (const char* pool : {"a", "b", "c"}) {
      PoolSpeed speed;
      if (rng.Uniform() < 0.5) {
        speed.of_one = 1 + 100 * rng.Uniform();
      } else {
        for (int nodes = 1; nodes <= 8; nodes *= 2) speed.measured[nodes] = 100 * nodes * (0.3 + rng.Uniform());
      }
      ask.speeds[pool] = speed;
      ask.pools.push_back(pool);
      offers.push_back({pool, static_cast<int>(10 * rng.Uniform()), 0.1 + rng.Uniform()});
    }
    ask.samples = 1e6;
    if (rng.Uniform() < 0.5) ask.bounds.deadline_seconds = 2000 + 1e5 * rng.Uniform();
    if (rng.Uniform() < 0.5) ask.bounds.budget_usd = 10 * rng.Uniform();
    if (rng.Uniform() < 0.3) ask.bounds.max_cost_per_hour = 5 * rng.Uniform();
    ask.objective = seed % 3 == 0   ? model::Objective::kTime
                    : seed % 3 == 1 ? model::Objective::kCost
                                    : model::Objective::kCostPerHour;
    double least = std::numeric_limits<double>::infinity();
    const auto value = [&](double seconds, double hourly) {
      return ask.objective == model::Objective::kTime   ? seconds
             : ask.objective == model::Objective::kCost ? seconds / 3600 * hourly
                                                        : hourly;
    };
    for (const NodeOffer& offer : offers) {
      for (int nodes = 1; nodes <= offer.free; ++nodes) {
        const double rate = ask.speeds.at(offer.name).Of(nodes);
        if (rate <= 0) continue;
        const double seconds = ask.samples / rate, hourly = nodes * offer.usd_per_unit_hour;
        const model::Constraints& b = ask.bounds;
        if (b.deadline_seconds > 0 && seconds > b.deadline_seconds) continue;
        if (b.budget_usd > 0 && seconds / 3600 * hourly > b.budget_usd) continue;
        if (b.max_cost_per_hour > 0 && hourly > b.max_cost_per_hour) continue;
        least = std::min(least, value(seconds, hourly));
      }
    }
    const Chosen chosen = Choose(ask, TrainJob(), offers);
    ASSERT_EQ(chosen.choice.has_value(), least < std::numeric_limits<double>::infinity()) << chosen.why_not;
    EXPECT_EQ(chosen.why_not.empty(), chosen.choice.has_value());
    if (!chosen.choice) continue;
    ++feasible;
    EXPECT_NEAR(value(chosen.choice->seconds, chosen.choice->usd_per_hour), least, 1e-6 * least);
  }
  std::printf("500 questions, %d with an answer\n", feasible);
  EXPECT_GE(feasible, 200);
}

}  // namespace
}  // namespace medley::ops::recommend
