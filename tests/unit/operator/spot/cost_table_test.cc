// The expected cost to finish, against values by hand and against drawn lives of the same process.
#include "operator/spot/cost_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "operator/spot/decide.h"

namespace medley::ops::spot {
namespace {

constexpr double kNo = std::numeric_limits<double>::infinity();

ZoneOffer Zone(double spot, double on_demand, double life, double away, std::vector<double> egress) {
  return {spot, on_demand, {1 / life, 1 / away}, 1, std::move(egress)};
}

TEST(CostTableTest, UnitsThatAreNeverLostCostTheirPrice) {
  const CostTable table({{Zone(1, 3, 1e9, 1, {0})}, 0.2, 40, 20});
  EXPECT_NEAR(table.StartSpot(0, 0, 40, 20), 40.2, 1e-6);
  EXPECT_NEAR(table.Running(0, 10, 5), 10, 1e-6);
}

TEST(CostTableTest, WithoutSpareTimeTheJobEndsOnDemand) {
  const CostTable table({{Zone(1, 3, 4, 1, {0})}, 0.2, 40, 20});
  EXPECT_NEAR(table.Waiting(0, 40, 0), 3 * 40.2, 1e-6);
  EXPECT_EQ(table.StartSpot(0, 0, 40, 0.1), kNo);
}

TEST(CostTableTest, AZoneWithoutSpotUnitsIsNeverTaken) {
  const CostTable table({{Zone(kNo, 3, 4, 1, {0, 1}), Zone(1, kNo, 1e9, 1, {1, 0})}, 0.2, 10, 10});
  EXPECT_EQ(table.Running(0, 5, 5), kNo);
  EXPECT_NEAR(table.StartSpot(0, 1, 10, 10), 1 + 10.2, 1e-6);
}

TEST(CostTableTest, MoreSpareTimeNeverCostsMoreAndMoreWorkNeverLess) {
  const CostTable table({{Zone(1, 3, 2, 1, {0, 1}), Zone(1.3, 3, 8, 2, {1, 0})}, 0.2, 30, 12});
  for (double work = 1; work < 29; work += 1.7) {
    for (double spare = 0; spare < 11; spare += 0.9) {
      EXPECT_LE(table.Waiting(0, work, spare + 1), table.Waiting(0, work, spare) + 1e-9);
      EXPECT_LE(table.Running(0, work, spare), table.Running(0, work + 1, spare) + 1e-9);
    }
  }
}

TEST(CostTableTest, AZoneThatLosesUnitsOftenIsWorthLessThanItsPriceSays) {
  const CostTable table({{Zone(1, 3, 0.3, 1, {0, 0}), Zone(1.2, 3, 50, 1, {0, 0})}, 0.2, 30, 12});
  EXPECT_LT(table.StartSpot(1, 1, 30, 12), table.StartSpot(1, 0, 30, 12));
}

TEST(CostTableTest, ASlowZoneUsesUpSpareTime) {
  TableQuestion question{{Zone(1, 3, 1e9, 1, {0, 0}), Zone(0.9, kNo, 1e9, 1, {0, 0})}, 0.2, 20, 10};
  question.zones[1].speed = 0.5;  // 40 hours for 20 hours of work, of which 10 are to spare
  const CostTable table(question);
  EXPECT_LT(table.StartSpot(0, 0, 20, 10), table.StartSpot(0, 1, 20, 10));
}

// Draws lives of one zone's units, decides every six minutes, and compares the mean of what is paid with the table.
TEST(CostTableTest, TheMeanOfDrawnLivesIsWhatTheTableSays) {
  const double start = 0.2, look = 0.1, life = 3, away = 1.5, work = 20, spare = 8;
  const CostTable table({{Zone(1, 4, life, away, {0})}, start, work, spare});
  std::mt19937_64 random(1);
  const auto chance = [&](double p) { return std::uniform_real_distribution<double>(0, 1)(random) < p; };
  double sum = 0;
  constexpr int kRuns = 2000;
  for (int run = 0; run < kRuns; ++run) {
    SpotState state{.work_hours = work, .hours_to_deadline = work + spare + start, .hours_to_next_look = look};
    bool up = true;
    while (state.work_hours > 1e-9) {
      const SpotDecision decision = DecideSpot(table, state, {up ? 1.0 : 0.0});
      if (up && !decision.ask.empty()) {
        state.runs = SpotState::Runs::kSpot;
        state.starting_hours = start;
      } else if (decision.otherwise == SpotDecision::Act::kOnDemand) {
        state.runs = SpotState::Runs::kOnDemand;
        state.starting_hours = start;
      }
      state.zone = 0;
      if (state.runs != SpotState::Runs::kNothing) {
        sum += look * (state.runs == SpotState::Runs::kSpot ? 1 : 4);
        state.work_hours -= std::min(state.work_hours, std::max(0.0, look - state.starting_hours));
        state.starting_hours = std::max(0.0, state.starting_hours - look);
      }
      state.hours_to_deadline -= look;
      ASSERT_GE(state.hours_to_deadline, -2 * look) << "the job would never end";
      up = up ? !chance(1 - std::exp(-look / life)) : chance(1 - std::exp(-look / away));
      if (!up && state.runs == SpotState::Runs::kSpot) state.runs = SpotState::Runs::kNothing;
    }
    ASSERT_GE(state.hours_to_deadline, -look);
  }
  EXPECT_NEAR(sum / kRuns, table.StartSpot(0, 0, work, spare), 0.05 * sum / kRuns);
}

}  // namespace
}  // namespace medley::ops::spot
