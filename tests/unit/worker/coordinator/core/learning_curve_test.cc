#include "worker/coordinator/core/learning_curve.h"

#include <gtest/gtest.h>

namespace medley::worker {
namespace {

Ledger MakeLedger() { return *Ledger::Create(/*rows=*/95, /*epochs=*/4, /*batch_size=*/10); }  // 10 steps an epoch

std::vector<int64_t> Due(const CurveOptions& options) {
  const Ledger ledger = MakeLedger();
  const LearningCurve curve(options);
  std::vector<int64_t> steps;
  for (int64_t step = 0; step <= ledger.total_steps(); ++step) {
    if (curve.IsDue(ledger, step)) steps.push_back(step);
  }
  return steps;
}

void Add(LearningCurve& curve, int64_t step, std::map<std::string, double> metrics) {
  curve.Add(MakeLedger(), step, std::move(metrics), base::WallTime());
}

TEST(LearningCurveTest, EvaluationsAreDueAfterEpochsOrSteps) {
  EXPECT_EQ(Due({}), std::vector<int64_t>());
  EXPECT_EQ(Due({.every_epochs = 1}), (std::vector<int64_t>{10, 20, 30}));  // the end has its own
  EXPECT_EQ(Due({.every_epochs = 3}), (std::vector<int64_t>{30}));
  EXPECT_EQ(Due({.every_steps = 15}), (std::vector<int64_t>{15, 30}));
  EXPECT_EQ(Due({.every_steps = 41}), std::vector<int64_t>());
}

TEST(LearningCurveTest, AnEvaluatedStepIsNotDueUntilItIsRolledBack) {
  const Ledger ledger = MakeLedger();
  LearningCurve curve({.every_steps = 5});
  Add(curve, 5, {{"auc", 0.5}});
  Add(curve, 10, {{"auc", 0.6}});
  EXPECT_FALSE(curve.IsDue(ledger, 5));
  EXPECT_FALSE(curve.IsDue(ledger, 10));
  EXPECT_TRUE(curve.IsDue(ledger, 15));
  curve.RollBack(9);
  ASSERT_EQ(curve.records().size(), 1);
  EXPECT_FALSE(curve.IsDue(ledger, 5));
  EXPECT_TRUE(curve.IsDue(ledger, 10));
}

TEST(LearningCurveTest, TheTrainingLossIsThatSinceTheLastEvaluation) {
  LearningCurve curve({.every_steps = 5});
  curve.AddLoss(8, 10);
  curve.AddLoss(1, 5);
  Add(curve, 5, {});
  EXPECT_DOUBLE_EQ(curve.records().back().loss(), 0.6);
  Add(curve, 10, {});
  EXPECT_FALSE(curve.records().back().has_loss());
  curve.AddLoss(8, 10);
  curve.RollBack(10);
  Add(curve, 15, {});
  EXPECT_FALSE(curve.records().back().has_loss());
  EXPECT_EQ(curve.records().back().epochs(), 1);
}

TEST(LearningCurveTest, TheLossOfAnEpochIsOfItsStepsSinceTheLastRollback) {
  LearningCurve curve({.every_steps = 5});
  EXPECT_FALSE(curve.EndEpoch());
  curve.AddLoss(8, 10);
  Add(curve, 5, {});  // an evaluation within the epoch
  curve.AddLoss(1, 5);
  EXPECT_DOUBLE_EQ(curve.EndEpoch().value_or(-1), 0.6);
  curve.AddLoss(8, 10);
  curve.RollBack(5);
  curve.AddLoss(1, 5);
  EXPECT_DOUBLE_EQ(curve.EndEpoch().value_or(-1), 0.2);
  EXPECT_FALSE(curve.EndEpoch());
}

TEST(LearningCurveTest, StopsAfterEvaluationsWithoutImprovement) {
  LearningCurve curve({.every_epochs = 1, .early_stopping = EarlyStopping{"auc", 2, 0.125}});
  Add(curve, 10, {{"auc", 0.25}});
  EXPECT_FALSE(curve.StopsAt(10));
  Add(curve, 11, {{"auc", 0.375}});  // by 0.125, not more
  EXPECT_FALSE(curve.StopsAt(11));
  Add(curve, 12, {{"auc", 0.5}});
  EXPECT_FALSE(curve.StopsAt(12));
  Add(curve, 13, {{"auc", 0.4}});
  EXPECT_FALSE(curve.StopsAt(13));
  Add(curve, 14, {{"auc", 0.6}});
  EXPECT_EQ(curve.StopsAt(14),
            "stopped early at step 14: auc has not improved by more than 0.125 in 2 evaluations in a row; its best "
            "value is 0.5, of step 12");
  EXPECT_FALSE(curve.StopsAt(13)) << "only the newest evaluation decides";
}

TEST(LearningCurveTest, LogLossImprovesByFalling) {
  LearningCurve curve({.every_epochs = 1, .early_stopping = EarlyStopping{"logLoss", 1, 0}});
  Add(curve, 10, {{"logLoss", 0.5}});
  Add(curve, 20, {{"logLoss", 0.4}});
  EXPECT_FALSE(curve.StopsAt(20));
  Add(curve, 30, {{"logLoss", 0.4}});
  EXPECT_TRUE(curve.StopsAt(30));
}

// Test data of one class have no AUC. The job must end, and say why.
TEST(LearningCurveTest, AMetricWithoutValueDoesNotImprove) {
  LearningCurve curve({.every_epochs = 1, .early_stopping = EarlyStopping{"auc", 2, 0}});
  Add(curve, 10, {{"logLoss", 0.5}});
  Add(curve, 20, {{"logLoss", 0.4}});
  EXPECT_FALSE(curve.StopsAt(10));
  EXPECT_TRUE(curve.StopsAt(20));
  EXPECT_NE(curve.StopsAt(20)->find("it has no value"), std::string::npos);
}

// The decision is a function of the records that the journal holds.
TEST(LearningCurveTest, ARestartAndARollbackDoNotChangeTheDecision) {
  const CurveOptions options{.every_epochs = 1, .early_stopping = EarlyStopping{"auc", 3, 0}};
  LearningCurve curve(options);
  Add(curve, 10, {{"auc", 0.9}});
  Add(curve, 11, {{"auc", 0.8}});
  Add(curve, 12, {{"auc", 0.8}});
  LearningCurve restarted(options);
  restarted.Restore(curve.records());
  Add(restarted, 13, {{"auc", 0.8}});
  EXPECT_TRUE(restarted.StopsAt(13));
  restarted.RollBack(11);
  Add(restarted, 12, {{"auc", 0.8}});
  EXPECT_FALSE(restarted.StopsAt(12));
  Add(restarted, 13, {{"auc", 0.8}});
  EXPECT_TRUE(restarted.StopsAt(13));
}

}  // namespace
}  // namespace medley::worker
