// What a job with a deadline does: a table of situations, and that it is never late.
#include "operator/spot/decide.h"

#include <gmock/gmock.h>

#include <limits>
#include <random>

namespace medley::ops::spot {
namespace {

using Act = SpotDecision::Act;
using Runs = SpotState::Runs;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr double kStart = 0.2;

// Two zones at 1 and 1.2 USD, on demand 3; a move costs 1 USD.
CostTable TwoZones(double life = 4, double second_price = 1.2) {
  return CostTable({{{1, 3, {1 / life, 1}, 1, {0, 1}}, {second_price, 3, {1 / life, 1}, 1, {1, 0}}}, kStart, 40, 20});
}

struct SpotCase {
  const char* name;
  SpotState state;
  std::vector<double> chances;
  Act otherwise;
  std::vector<size_t> ask;
  const char* reason;
};

class DecideSpotTest : public testing::TestWithParam<SpotCase> {};

TEST_P(DecideSpotTest, DecidesByExpectedCost) {
  const CostTable table = TwoZones();
  const SpotDecision decision = DecideSpot(table, GetParam().state, GetParam().chances);
  EXPECT_EQ(decision.otherwise, GetParam().otherwise);
  EXPECT_EQ(decision.ask, GetParam().ask);
  EXPECT_STREQ(decision.reason, GetParam().reason);
  EXPECT_THAT(Explain(table, GetParam().state, decision, {"north", "south"}), testing::HasSubstr("to spare"));
}

SpotState At(Runs runs, double work, double left, double starting = 0) {
  return {runs, 0, starting, work, left, 0.1, 0, 0.05};
}

INSTANTIATE_TEST_SUITE_P(
    All, DecideSpotTest,
    testing::Values(
        SpotCase{"TheFirstUnitsAreTheCheapest",
                 {Runs::kNothing, std::nullopt, 0, 40, 60, 0.1, 0, 0.05},
                 {1, 1},
                 Act::kWait,
                 {0},
                 "WaitsForSpot"},
        SpotCase{"AfterALossWithTimeToSpareItWaitsForItsZone",
                 At(Runs::kNothing, 5, 30),
                 {0, 1},
                 Act::kWait,
                 {},
                 "WaitsForSpot"},
        SpotCase{"AfterALossWithLittleTimeItMoves",
                 At(Runs::kNothing, 39, 40),
                 {0, 1},
                 Act::kOnDemand,
                 {1},
                 "OnDemandIsCheaper"},
        SpotCase{"WithoutTimeItTakesOnDemandUnits",
                 At(Runs::kNothing, 39, 39.25),
                 {1, 1},
                 Act::kOnDemand,
                 {},
                 "NoSpareTime"},
        SpotCase{"SpotUnitsStayWhileALossCanBeMadeUp", At(Runs::kSpot, 39, 39.21), {1, 1}, Act::kStay, {}, "Cheapest"},
        SpotCase{"SpotUnitsThatStartAreLeftWhenALossCouldNotBeMadeUp",
                 At(Runs::kSpot, 39, 39.25, 0.15),
                 {1, 1},
                 Act::kOnDemand,
                 {},
                 "NoSpareTime"},
        SpotCase{
            "OnDemandUnitsAreLeftForSpotUnits", At(Runs::kOnDemand, 20, 25), {1, 0}, Act::kStay, {0}, "SpotIsBack"},
        SpotCase{"OnDemandUnitsStayAtTheEnd", At(Runs::kOnDemand, 20, 20.2), {1, 1}, Act::kStay, {}, "Cheapest"}),
    [](const auto& each) { return each.param.name; });

TEST(DecideSpotMoveTest, ItMovesToAZoneThatIsMuchCheaperAndNotToOneThatIsALittle) {
  SpotState state = At(Runs::kSpot, 30, 50);
  state.zone = 1;
  EXPECT_THAT(DecideSpot(TwoZones(4, 5), state, {1, 1}).ask, ElementsAre(0));
  EXPECT_THAT(DecideSpot(TwoZones(4, 1.02), state, {1, 1}).ask, IsEmpty());
  EXPECT_THAT(DecideSpot(TwoZones(4, 5), state, {0, 1}).ask, IsEmpty());  // it is known to have none
}

// However capacity comes and goes, and whatever is lost: no decision makes the job late.
TEST(DecideSpotPromiseTest, NoJobIsLate) {
  std::mt19937_64 random(7);
  const auto uniform = [&](double least, double most) {
    return std::uniform_real_distribution<double>(least, most)(random);
  };
  for (int run = 0; run < 200; ++run) {
    const double start = uniform(0.01, 1), look = uniform(0.02, 0.5), work = uniform(1, 20);
    const double at_risk = run % 2 == 0 ? 0 : uniform(0, 0.3), spare = uniform(0.0, 5);
    const CostTable table({{{1, 3, {uniform(0.01, 5), uniform(0.01, 5)}, 1, {0, 1}},
                            {uniform(0.5, 5), 3, {uniform(0.01, 5), uniform(0.01, 5)}, 1, {1, 0}}},
                           start,
                           work,
                           spare});
    const double share_up = uniform(0, 1);
    SpotState state{.work_hours = work,
                    .hours_to_deadline = work + start + spare,
                    .hours_to_next_look = look,
                    .work_at_risk_hours = at_risk};
    double trained_since = 0;
    while (state.work_hours > 1e-9) {
      ASSERT_GT(state.hours_to_deadline, -1e-6) << "run " << run;
      const std::vector<double> up = {uniform(0, 1) < share_up ? 1.0 : 0.0, uniform(0, 1) < share_up ? 1.0 : 0.0};
      if (state.runs == Runs::kSpot && up[*state.zone] == 0) {
        state.runs = Runs::kNothing;
        state.work_hours += std::min(trained_since, at_risk);
        state.starting_hours = 0;
      }
      const SpotDecision decision = DecideSpot(table, state, up);
      bool starts = false;
      for (const size_t zone : decision.ask) {
        if (up[zone] == 0) continue;
        state.runs = Runs::kSpot;
        state.zone = zone;
        starts = true;
        break;
      }
      if (!starts && decision.otherwise == Act::kOnDemand) {
        state.runs = Runs::kOnDemand;
        state.zone = decision.on_demand_zone;
        starts = true;
      }
      if (starts) {
        state.starting_hours = start;
        trained_since = 0;
      }
      state.hours_to_deadline -= look;
      if (state.runs == Runs::kNothing) continue;
      const double trained = std::min(state.work_hours, std::max(0.0, look - state.starting_hours));
      if (trained == state.work_hours) state.hours_to_deadline += look - state.starting_hours - trained;
      state.starting_hours = std::max(0.0, state.starting_hours - look);
      state.work_hours -= trained;
      trained_since += trained;
    }
    EXPECT_GT(state.hours_to_deadline, -1e-6) << "run " << run;
  }
}

}  // namespace
}  // namespace medley::ops::spot
