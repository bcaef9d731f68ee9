#include "cli/run/scenario.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "common/base/file.h"
#include "common/base/testing/status_matchers.h"

namespace medley::cli {
namespace {

using base::StatusIs;
using testing::HasSubstr;
// The "---" is needed because a document that begins with a brace would be parsed as JSON.
absl::StatusOr<Scenario> Parse(const std::string& flow) { return ParseScenario("---\n" + flow); }

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(ScenarioTest, TheExamplesScenarioIsValid) {
  const std::filesystem::path root(std::getenv("MEDLEY_SOURCE_DIR"));
  const auto scenario = ParseScenario(*base::ReadFile(root / "examples/adult.scenario.yaml"));
  ASSERT_THAT(scenario, base::IsOk());
  ASSERT_EQ(scenario->steps.size(), 2u);
  EXPECT_GT(scenario->goal_percent, 0);
  EXPECT_GE(scenario->mix_saves_percent, 20);
  EXPECT_FALSE(scenario->steps[0].prices.empty());
  EXPECT_EQ(scenario->steps[1].kill->role, "trainer");
  EXPECT_GE(scenario->expect.metrics.at("auc"), 0.915);
  EXPECT_LE(scenario->expect.metrics.at("logLoss"), 0.30);
}

TEST(ScenarioTest, RefusesUnknownFieldsWithTheirPath) {
  EXPECT_THAT(Parse("{prizes: x}"), StatusIs(kInvalid, HasSubstr("scenario.prizes: unknown field")));
  EXPECT_THAT(Parse("{mixSavesPercent: 20}"), StatusIs(kInvalid, HasSubstr("mixSavesPercent")));
  EXPECT_THAT(Parse("{goalPercent: 50, mixSavesPercent: 100}"), StatusIs(kInvalid, HasSubstr("mixSavesPercent")));
  EXPECT_THAT(Parse("{steps: [{prices: a}]}"), StatusIs(kInvalid, HasSubstr("steps[0].atPercent")));
  EXPECT_THAT(Parse("{steps: [{atPercent: 101, prices: a}]}"), StatusIs(kInvalid, HasSubstr("steps[0].atPercent")));
  EXPECT_THAT(Parse("{steps: [{atPercent: 10}]}"), StatusIs(kInvalid, HasSubstr("needs prices or kill")));
  EXPECT_THAT(Parse("{steps: [{atPercent: 50, prices: a}, {atPercent: 10, prices: b}]}"),
              StatusIs(kInvalid, HasSubstr("in order")));
  EXPECT_THAT(Parse("{steps: [{atPercent: 1, kill: {role: operator}}]}"),
              StatusIs(kInvalid, HasSubstr("steps[0].kill.role")));
  for (const char* percent : {"0", "-5", "100.5", ".nan"}) {
    EXPECT_THAT(Parse("{goalPercent: " + std::string(percent) + "}"), StatusIs(kInvalid, HasSubstr("goalPercent")));
  }
  EXPECT_THAT(Parse("{expect: {auc: high}}"), StatusIs(kInvalid, HasSubstr("expect.auc: must be a number")));
  EXPECT_THAT(Parse("[1, 2]"), StatusIs(kInvalid));
  EXPECT_THAT(Parse("{steps: 3}"), StatusIs(kInvalid, HasSubstr("scenario.steps")));
}

}  // namespace
}  // namespace medley::cli
