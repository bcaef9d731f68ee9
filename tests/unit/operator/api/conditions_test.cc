#include "operator/api/conditions.h"

#include <gtest/gtest.h>

namespace medley::ops {
namespace {

const base::WallTime kNoon{base::seconds(1'700'000'000)};

TEST(ConditionsTest, TransitionTimeChangesOnlyWithTheStatus) {
  Conditions conditions;
  EXPECT_TRUE(conditions.Set("Planned", ConditionStatus::kUnknown, Reason::kProfiling, "measuring", 1, kNoon));
  const std::string first = conditions.Find("Planned")->last_transition_time;
  EXPECT_TRUE(conditions.Set("Planned", ConditionStatus::kUnknown, Reason::kSchedulerUnavailable, "away", 1,
                             kNoon + base::seconds(5)));
  EXPECT_EQ(conditions.Find("Planned")->last_transition_time, first);
  EXPECT_TRUE(conditions.Set("Planned", ConditionStatus::kTrue, Reason::kPlanFound, "x", 2, kNoon + base::seconds(9)));
  EXPECT_NE(conditions.Find("Planned")->last_transition_time, first);
  EXPECT_FALSE(
      conditions.Set("Planned", ConditionStatus::kTrue, Reason::kPlanFound, "x", 3, kNoon + base::seconds(10)));
  EXPECT_EQ(conditions.Find("Planned")->observed_generation, 3);
}

TEST(ConditionsTest, SurvivesJson) {
  Conditions conditions;
  conditions.Set("Running", ConditionStatus::kTrue, Reason::kGenerationCommitted, "generation 1", 4, kNoon);
  conditions.Set("Failed", ConditionStatus::kFalse, Reason::kTrainingFailed, "", 4, kNoon);
  EXPECT_EQ(Conditions::FromJson(conditions.ToJson()), conditions);
}

TEST(ConditionsTest, SkipsMalformedEntries) {
  EXPECT_TRUE(Conditions::FromJson(kube::Json(7)).all().empty());
  EXPECT_TRUE(Conditions::FromJson(kube::Json::parse(R"([1, {"status": "True"}])")).all().empty());
}

}  // namespace
}  // namespace medley::ops
