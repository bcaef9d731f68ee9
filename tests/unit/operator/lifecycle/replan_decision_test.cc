#include "operator/lifecycle/replan_decision.h"
#include "common/model/prediction.h"

#include <gmock/gmock.h>

namespace medley::ops {
namespace {

using testing::HasSubstr;

// One hour of training is left at 1 USD/h; the candidate costs half.
MoveInputs Half() {
  MoveInputs in;
  in.remaining_samples = 3.6e6;
  in.current_usd_per_hour = 1;
  in.current_throughput = 1000;
  in.current_estimated_throughput = 1000;
  in.candidate_usd_per_hour = 0.5;
  in.candidate_estimated_throughput = 1000;
  in.pause_seconds = 1;
  in.warm_up_seconds = 35;
  return in;
}

TEST(ReplanDecisionTest, HandWorkedNumbers) {
  const MoveDecision d = DecideMove(Half());
  EXPECT_TRUE(d.move);
  EXPECT_EQ(d.reason, "Saves");
  EXPECT_DOUBLE_EQ(d.stay, 1);
  EXPECT_DOUBLE_EQ(d.move_to, 0.5);
  EXPECT_DOUBLE_EQ(d.saving, 0.5);
  EXPECT_DOUBLE_EQ(d.move_cost, 36.0 / 3600 * 0.5);
  EXPECT_THAT(d.sentence, HasSubstr("saves 0.5 USD (50.0 %)"));
}

// When predictions have been corrected since, candidates are compared with the measured throughput, not with the old
// estimate.
TEST(ReplanDecisionTest, CorrectedPredictionsAreNotCorrectedAgain) {
  EXPECT_EQ(PresentEstimate(1000, 600, std::nullopt), 1000);
  EXPECT_EQ(PresentEstimate(1000, 600, model::Prediction{2, 0.6, 0.6, 0.4, {{"cpu", 1, 1, 2}}}), 1000);
  EXPECT_DOUBLE_EQ(PresentEstimate(1000, 600, model::Prediction{9, 0.6, 0.96, 0.02, {{"cpu", 1.6, 1, 9}}}), 625);
  EXPECT_EQ(PresentEstimate(1000, 0, model::Prediction{9, 0.6, 0.96, 0.02, {{"cpu", 1.6, 1, 9}}}), 1000);
}

// The job trains at 500 samples/s where its profile promises 1000. It was planned with the corrected profile.
TEST(ReplanDecisionTest, PredictionsThatAreNoLongerCorrectedAreComparedWithUncorrectedOnes) {
  const model::Prediction corrected{9, 0.5, 1, 0.02, {{"cpu", 2, 1, 9}}};
  EXPECT_DOUBLE_EQ(WithoutCorrections(500, corrected), 1000);
  EXPECT_DOUBLE_EQ(WithoutCorrections(500, std::nullopt), 500);
  MoveInputs in = Half();
  in.current_throughput = 500;
  in.current_estimated_throughput = PresentEstimate(WithoutCorrections(500, corrected), 500, std::nullopt);
  in.candidate_usd_per_hour = 1;
  in.candidate_estimated_throughput = 1000;  // as uncorrected as 1000 for the present plan
  const MoveDecision d = DecideMove(in);
  EXPECT_FALSE(d.move) << d.sentence;
  EXPECT_DOUBLE_EQ(d.saving, 0);
}

// Half of the time at twice the price costs as much, but a job with Objective::fastest is interested in time alone.
TEST(ReplanDecisionTest, TheFastestPlanSavesSeconds) {
  MoveInputs in = Half();
  in.candidate_usd_per_hour = 3;
  in.candidate_estimated_throughput = 2000;
  EXPECT_EQ(DecideMove(in).reason, "CostsMoreThanItSaves");
  in.fastest = true;
  const MoveDecision d = DecideMove(in);
  EXPECT_TRUE(d.move) << d.sentence;
  EXPECT_DOUBLE_EQ(d.stay, 3600);
  EXPECT_DOUBLE_EQ(d.move_to, 1800);
  EXPECT_DOUBLE_EQ(d.move_cost, 1) << "the pause; while pods start, the job trains on";
  EXPECT_THAT(d.sentence, HasSubstr("saves 1,800 s (50.0 %)"));
  in.candidate_estimated_throughput = 1000;
  in.candidate_usd_per_hour = 0.5;
  EXPECT_FALSE(DecideMove(in).move) << "cheaper, but no faster";
}

// What an hour costs is all that counts, and a move costs none of it.
TEST(ReplanDecisionTest, TheLeastUsdPerHourSavesUsdPerHour) {
  MoveInputs in = Half();
  in.least_usd_per_hour = true;
  in.current_usd_per_hour = 2;
  in.candidate_usd_per_hour = 1;
  in.candidate_estimated_throughput = 100;  // ten times the USD for the job
  const MoveDecision d = DecideMove(in);
  EXPECT_TRUE(d.move) << d.sentence;
  EXPECT_DOUBLE_EQ(d.saving, 1);
  EXPECT_DOUBLE_EQ(d.move_cost, 0);
  EXPECT_THAT(d.sentence, HasSubstr("saves 1 USD per hour (50.0 %)"));
  in.candidate_usd_per_hour = 1.9;
  EXPECT_EQ(DecideMove(in).reason, "SavingTooSmall");
  in.candidate_usd_per_hour = 2.5;
  in.candidate_estimated_throughput = 1e6;
  EXPECT_FALSE(DecideMove(in).move);
}

TEST(ReplanDecisionTest, NearTheEndTheMoveCostsMoreThanItSaves) {
  MoveInputs in = Half();
  in.remaining_samples = 30000;  // half a minute of training
  const MoveDecision d = DecideMove(in);
  EXPECT_FALSE(d.move);
  EXPECT_EQ(d.reason, "CostsMoreThanItSaves");
}

TEST(ReplanDecisionTest, LostSamplesArePaidAgain) {
  MoveInputs in = Half();
  in.lost_samples = 3.6e6;
  EXPECT_EQ(DecideMove(in).reason, "CostsMoreThanItSaves");
}

TEST(ReplanDecisionTest, AMoveNeedsMinSavingAndACooldown) {
  MoveInputs in = Half();
  in.candidate_usd_per_hour = 0.95;
  EXPECT_EQ(DecideMove(in).reason, "SavingTooSmall");
  in = Half();
  in.seconds_since_last_move = 299;
  EXPECT_EQ(DecideMove(in).reason, "Cooldown");
  in.seconds_since_last_move = 300;
  EXPECT_EQ(DecideMove(in).reason, "Saves");
}

TEST(ReplanDecisionTest, AForcedMoveNeedsNoSaving) {
  MoveInputs in = Half();
  in.candidate_usd_per_hour = 9;
  in.seconds_since_last_move = 0;
  in.forced = true;
  EXPECT_TRUE(DecideMove(in).move);
  in.same_plan = true;
  EXPECT_EQ(DecideMove(in).reason, "SamePlan");
}

// A cost model that predicts twice the real throughput does so for the candidate, too.
TEST(ReplanDecisionTest, AWrongCostModelDoesNotCauseMoves) {
  MoveInputs in = Half();
  in.candidate_usd_per_hour = 1;
  in.current_estimated_throughput = 2000;
  in.candidate_estimated_throughput = 2000;
  const MoveDecision d = DecideMove(in);
  EXPECT_FALSE(d.move);
  EXPECT_DOUBLE_EQ(d.saving, 0);
}

TEST(ReplanDecisionTest, NeverMovesWithNothingLeftOrNothingKnown) {
  MoveInputs in = Half();
  in.remaining_samples = 0;
  EXPECT_EQ(DecideMove(in).reason, "NothingLeft");
  EXPECT_FALSE(DecideMove(MoveInputs()).move);
}

// Property: the decision does not depend on the unit of money.
TEST(ReplanDecisionTest, ScalingAllPricesChangesNoDecision) {
  for (const double candidate : {0.1, 0.5, 0.85, 0.91, 0.99, 1.5}) {
    for (const double scale : {1e-3, 1.0, 1e3}) {
      MoveInputs in = Half();
      in.candidate_usd_per_hour = candidate;
      const std::string reason = DecideMove(in).reason;
      in.current_usd_per_hour *= scale;
      in.candidate_usd_per_hour *= scale;
      EXPECT_EQ(DecideMove(in).reason, reason) << candidate << " x " << scale;
    }
  }
}

}  // namespace
}  // namespace medley::ops
