// The simulated world against numbers by hand, and policies against what is possible.
#include "cli/traces/world.h"

#include <gmock/gmock.h>

#include <random>

#include "cli/traces/optimum.h"
#include "cli/traces/policies.h"
#include "cli/traces/uniform_progress.h"
#include "common/base/testing/status_matchers.h"

namespace medley::cli::traces {
namespace {

using testing::HasSubstr;

// Ticks of an hour; zone a1 is up where the text has an x.
Trace OneZone(const std::string& up, double spot = 1, double on_demand = 4) {
  Trace trace{.name = "t", .tick_seconds = 3600, .zones = {"a1"}};
  trace.units.resize(1);
  for (const char c : up) trace.units[0].push_back(c == 'x' ? 1 : 0);
  trace.spot_usd = {std::vector<double>(up.size(), spot)};
  trace.on_demand_usd = {on_demand};
  return trace;
}

Outcome CourseOf(const Trace& trace, const TraceJob& job, Policy& policy) {
  const auto outcome = Simulate(trace, Egress(), job, policy);
  EXPECT_THAT(outcome, base::IsOk());
  return outcome.ok() ? *outcome : Outcome();
}

TEST(WorldTest, WorkAndStartsArePaidToTheMomentTheWorkEnds) {
  OnDemandPolicy policy;
  const Outcome outcome =
      CourseOf(OneZone("xxxxxx"), {.work_hours = 2.25, .deadline_hours = 6, .start_hours = 0.5}, policy);
  EXPECT_TRUE(outcome.in_time);
  EXPECT_NEAR(outcome.hours, 2.75, 1e-9);
  EXPECT_NEAR(outcome.usd, 4 * 2.75, 1e-9);
  EXPECT_NEAR(outcome.whole_ticks_usd, 4 * 3, 1e-9);
}

TEST(WorldTest, ALossCostsTheWorkSinceTheLastCheckpointUnlessANoticeComesInTime) {
  TraceJob job{.work_hours = 3, .deadline_hours = 20, .start_hours = 0.5, .checkpoint_hours = 1};
  FirstPlanPolicy unwarned, warned;
  const Outcome lost = CourseOf(OneZone("xxoxxxxxxxxxxxxxxxxx"), job, unwarned);
  EXPECT_EQ(lost.losses, 1);
  EXPECT_NEAR(lost.lost_work_hours, 0.5, 1e-9);  // 1.5 hours were done, the last checkpoint is at 1
  EXPECT_NEAR(lost.hours, 3 + 0.5 + 2, 1e-9);
  job.notice_hours = 0.1;
  job.save_hours = 0.05;
  EXPECT_EQ(CourseOf(OneZone("xxoxxxxxxxxxxxxxxxxx"), job, warned).lost_work_hours, 0);
}

TEST(WorldTest, AMoveToAnotherRegionPaysForTheTransfer) {
  Trace trace = OneZone("xxooooooo");
  trace.zones.push_back("b1");
  trace.units.push_back({0, 0, 1, 1, 1, 1, 1, 1, 1});
  trace.spot_usd.push_back(std::vector<double>(9, 2.0));
  trace.on_demand_usd.push_back(4);
  CheapestNowPolicy policy;
  const Outcome outcome =
      CourseOf(trace, {.work_hours = 4, .deadline_hours = 9, .start_hours = 0, .checkpoint_gb = 100}, policy);
  EXPECT_EQ(outcome.moves, 1);
  EXPECT_NEAR(outcome.egress_usd, 2, 1e-9);
  EXPECT_NEAR(outcome.usd, 2 * 1 + 2 * 2 + 2, 1e-9);
  ASSERT_EQ(outcome.timeline.size(), 4);
  EXPECT_EQ(outcome.timeline[2].zone, "b1");
  EXPECT_NEAR(outcome.timeline[2].usd, 2, 1e-9);
}

TEST(WorldTest, SpotUnitsNeedAsManyAsTheJobHas) {
  Trace trace = OneZone("xxxxxxxx");
  trace.units[0] = {4, 4, 3, 3, 4, 4, 4, 4};
  FirstPlanPolicy policy;
  const Outcome outcome = CourseOf(trace, {.work_hours = 3, .deadline_hours = 8, .units = 4, .start_hours = 0}, policy);
  EXPECT_EQ(outcome.losses, 1);
  EXPECT_NEAR(outcome.usd, 4 * 3, 1e-9);
}

TEST(WorldTest, AJobThatDoesNotFitIsRefused) {
  OnDemandPolicy policy;
  EXPECT_THAT(Simulate(OneZone("xx"), Egress(), {.work_hours = 1, .deadline_hours = 2, .first_tick = 2}, policy),
              base::StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("starts at record 2")));
  EXPECT_THAT(Simulate(OneZone("xx"), Egress(), {.work_hours = 0, .deadline_hours = 2}, policy),
              base::StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("must be greater than 0")));
  Trace free = OneZone("xx");
  free.on_demand_usd[0] = std::numeric_limits<double>::infinity();
  EXPECT_THAT(Simulate(free, Egress(), {.work_hours = 1, .deadline_hours = 2}, policy),
              base::StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("have no price")));
}

TEST(OptimumTest, ItWaitsForSpotUnitsThatWillComeInTime) {
  const auto best =
      SimulateOptimum(OneZone("oooxxxxx"), Egress(), {.work_hours = 3, .deadline_hours = 8, .start_hours = 1});
  ASSERT_THAT(best, base::IsOk());
  EXPECT_NEAR(best->usd, 4, 1e-9);
  EXPECT_EQ(best->on_demand_hours, 0);
  EXPECT_THAT(SimulateOptimum(OneZone("xx"), Egress(), {.work_hours = 3, .deadline_hours = 2, .start_hours = 0}),
              base::StatusIs(absl::StatusCode::kFailedPrecondition));
}

// Two zones that come and go by chance, and prices that differ.
Trace Drawn(uint64_t seed, size_t ticks) {
  std::mt19937_64 random(seed);
  const auto uniform = [&] { return std::uniform_real_distribution<double>(0, 1)(random); };
  Trace trace{.name = "drawn", .tick_seconds = 600, .zones = {"a1", "b1"}};
  for (int z = 0; z < 2; ++z) {
    const double leave = 0.02 + 0.3 * uniform(), come = 0.02 + 0.3 * uniform(), usd = 0.5 + 2 * uniform();
    bool up = uniform() < 0.5;
    trace.units.emplace_back();
    for (size_t t = 0; t < ticks; ++t) {
      up = up ? uniform() >= leave : uniform() < come;
      trace.units.back().push_back(up ? 1 : 0);
    }
    trace.spot_usd.emplace_back(ticks, usd);
    trace.on_demand_usd.push_back(4 + uniform());
  }
  return trace;
}

// Start times are whole ticks here, so that the optimum is one for policies too.
TEST(PoliciesTest, NoneIsCheaperThanTheOptimumAndMedleyIsNeverLate) {
  double medley_sum = 0, optimum_sum = 0, up_sum = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const Trace trace = Drawn(seed, 150);
    const TraceJob job{.work_hours = 10 + static_cast<double>(seed % 7),
                       .deadline_hours = 20,
                       .start_hours = 1.0 / 3,
                       .checkpoint_gb = seed % 3 == 0 ? 40.0 : 0.0};
    MedleyPolicy medley;
    UniformProgressPolicy up(ZoneOrder::kCheapest);
    FirstPlanPolicy first;
    const auto best = SimulateOptimum(trace, Egress(), job);
    ASSERT_THAT(best, base::IsOk());
    const Outcome ours = CourseOf(trace, job, medley), uniform = CourseOf(trace, job, up),
                  kept = CourseOf(trace, job, first);
    EXPECT_TRUE(ours.in_time) << "seed " << seed;
    EXPECT_TRUE(uniform.in_time && kept.in_time) << "seed " << seed;
    for (const Outcome& outcome : {ours, uniform, kept})
      EXPECT_GE(outcome.whole_ticks_usd, best->whole_ticks_usd - 1e-3);
    medley_sum += ours.usd;
    optimum_sum += best->usd;
    up_sum += uniform.usd;
  }
  EXPECT_LT(medley_sum, up_sum);
  EXPECT_LT(medley_sum, 1.35 * optimum_sum);
}

TEST(PoliciesTest, TheSameRecordGivesTheSameCourse) {
  const Trace trace = Drawn(5, 150);
  const TraceJob job{.work_hours = 12, .deadline_hours = 20, .start_hours = 0.2};
  MedleyPolicy first, second;
  const Outcome a = CourseOf(trace, job, first), b = CourseOf(trace, job, second);
  ASSERT_EQ(a.timeline.size(), b.timeline.size());
  EXPECT_EQ(a.usd, b.usd);
  for (size_t i = 0; i < a.timeline.size(); ++i) EXPECT_EQ(a.timeline[i].why, b.timeline[i].why);
}

}  // namespace
}  // namespace medley::cli::traces
