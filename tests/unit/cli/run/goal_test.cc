#include "cli/run/goal.h"

#include <gtest/gtest.h>

namespace medley::cli {
namespace {

using kube::Json;

TEST(GoalTest, AsksForMoreThanAnyPlanReachesAndKeepsTheOtherGoals) {
  kube::Object job(Json{{"spec", {{"objective", {{"minThroughput", 11000}, {"maxUsdPerHour", "5"}}}}}});
  AskForMost(job);
  EXPECT_EQ(job.At("/spec/objective/minThroughput"), Json(1e12));
  EXPECT_EQ(job.At("/spec/objective/maxUsdPerHour"), Json("5"));
  kube::Object without(Json{{"spec", Json::object()}});
  AskForMost(without);
  EXPECT_EQ(without.At("/spec/objective/minThroughput"), Json(1e12));
}

TEST(GoalTest, ReadsWhatThePlannerAnswers) {
  const std::string words = "samples/s with the other constraints, minThroughput is 1000000000000: lower it to ";
  EXPECT_EQ(MostReached("Infeasible", "reaches at most 26114 " + words + "26114"), 26114);
  EXPECT_EQ(MostReached("Infeasible", "reaches at most 9.5 " + words + "9.5"), 9.5);
  // Another refusal, another goal, no answer, words instead of a number.
  EXPECT_EQ(MostReached("Queued", "reaches at most 26114 " + words + "26114"), std::nullopt);
  EXPECT_EQ(MostReached("Infeasible",
                        "reaches at most 26114 samples/s with the other constraints, minThroughput is 30000: "
                        "lower it to 26114"),
            std::nullopt);
  EXPECT_EQ(MostReached("Infeasible", "needs 3 units of new, only 1 may be used"), std::nullopt);
  EXPECT_EQ(MostReached("Infeasible", "reaches at most few " + words + "few"), std::nullopt);
  EXPECT_EQ(MostReached("Infeasible", "reaches at most 0 " + words + "0"), std::nullopt);
  EXPECT_EQ(MostReached("", ""), std::nullopt);
}

TEST(GoalTest, IsAWholePercentage) {
  EXPECT_EQ(GoalOf(26114, 42), 10967);
  EXPECT_EQ(GoalOf(1000, 100), 1000);
  EXPECT_EQ(GoalOf(0.5, 40), 1);
}

}  // namespace
}  // namespace medley::cli
