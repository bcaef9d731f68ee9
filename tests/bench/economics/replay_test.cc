// Compares the replay with numbers computed by hand.
#include "tests/bench/economics/replay.h"

#include <gtest/gtest.h>

#include "common/base/testing/status_matchers.h"

namespace medley::bench {
namespace {

// One layer, which processes 64 samples in 0.064 s on a unit of either type: 1000 samples/s, so 3.6e6 samples take an
// hour. "spot" costs 1 USD/h until 1800 s, then 4; "od" costs 2.
Scenario OneHour() {
  Scenario s;
  s.request.model.layers.resize(1);
  s.request.model.layers[0].profiles = {{"spot", 0.064, 0, 0, 0, 0, 0}, {"od", 0.064, 0, 0, 0, 0, 0}};
  s.request.training.profile_batch_size = 64;
  s.request.training.samples_per_epoch = 3.6e6;
  s.request.resources = {{"spot", model::ResourceClass::kGpu, 0, 1}, {"od", model::ResourceClass::kGpu, 0, 1}};
  s.on_demand = {false, true};
  s.place = {"", ""};
  s.begin = 0;
  s.end = 7200;
  s.changes = {{0, 0, 1}, {0, 1, 2}, {1800, 0, 4}};
  s.pause_seconds = 36;
  s.warm_up_seconds = 144;
  s.cooldown_seconds = 0;
  return s;
}

TEST(ReplayTest, KeepingTheFirstPlanPaysTheNewPrice) {
  const auto kept = Replay(OneHour(), {.name = "kept", .replan = false});
  ASSERT_THAT(kept, base::IsOk());
  EXPECT_NEAR(kept->usd, 0.5 * 1 + 0.5 * 4, 1e-9);
  EXPECT_NEAR(kept->hours, 1, 1e-9);
  EXPECT_EQ(kept->moves, 0);
}

TEST(ReplayTest, AMoveIsPaidFor) {
  const auto moved = Replay(OneHour(), {.name = "moved"});
  ASSERT_THAT(moved, base::IsOk());
  EXPECT_EQ(moved->moves, 1);
  EXPECT_NEAR(moved->usd, 0.5 * 1 + 0.5 * 2 + 180.0 / 3600 * 2, 1e-9);
  EXPECT_NEAR(moved->hours, 1 + 36.0 / 3600, 1e-9);
  EXPECT_NEAR(moved->share_above_floor, 1 - 36.0 / 3636, 1e-9);
}

TEST(ReplayTest, OnDemandOnlyNeverSeesSpot) {
  const auto od = Replay(OneHour(), {.name = "od", .on_demand_only = true});
  ASSERT_THAT(od, base::IsOk());
  EXPECT_NEAR(od->usd, 2, 1e-9);
}

TEST(ReplayTest, APlanStaysInOnePlace) {
  Scenario s = OneHour();
  s.request.model.layers.push_back(s.request.model.layers[0]);
  s.request.model.layers[0].profiles.pop_back();                                         // layer 0 on spot only
  s.request.model.layers[1].profiles.erase(s.request.model.layers[1].profiles.begin());  // layer 1 on od only
  s.place = {"a", "b"};
  EXPECT_FALSE(Replay(s, {.name = "apart"}).ok());
  s.place = {"a", "a"};
  EXPECT_THAT(Replay(s, {.name = "together"}), base::IsOk());
}

}  // namespace
}  // namespace medley::bench
