// What `medley simulate --traces` prints.
#include "cli/traces/report.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "common/base/testing/status_matchers.h"

namespace medley::cli::traces {
namespace {

using testing::HasSubstr;

TEST(TraceReportTest, ItHasTheCourseTheTotalAndOtherPolicies) {
  Trace trace{.name = "gpus", .tick_seconds = 600, .zones = {"a1"}};
  trace.units = {std::vector<int>(60, 1)};
  for (int t = 12; t < 18; ++t) trace.units[0][static_cast<size_t>(t)] = 0;
  trace.spot_usd = {std::vector<double>(60, 1.5)};
  trace.on_demand_usd = {6};
  const auto report = RunOnTrace(trace, Egress(),
                                 {.work_hours = 5, .deadline_hours = 9, .start_hours = 0.25, .first_tick = 3}, "adult");
  ASSERT_THAT(report, base::IsOk());
  const std::string text = TraceText(*report);
  for (const char* part : {"job adult: 5.00 h of work on 1 unit of gpus, deadline 9.00 h after 1970-01-01T00:30:00Z",
                           "spot units were lost", "the work is done", "the optimum, which knows the future",
                           "on-demand units only", "before the deadline", "1 loss"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  const nlohmann::ordered_json json = TraceJson(*report);
  EXPECT_EQ(json["total"]["losses"], 1);
  EXPECT_EQ(json["total"]["inTime"], true);
  EXPECT_EQ(json["timeline"].back()["usd"], json["total"]["usd"]);
  EXPECT_EQ(json["compared"].size(), 5);
  EXPECT_GE(json["total"]["usd"].get<double>(), json["compared"][0]["usd"].get<double>() - 1e-9);
}

}  // namespace
}  // namespace medley::cli::traces
