#include "cli/run/summary.h"

#include <gmock/gmock.h>

namespace medley::cli {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Scenario Expecting() {
  Scenario scenario;
  scenario.expect = {.metrics = {{"auc", 0.915}, {"logLoss", 0.30}}, .rescales = 1, .recoveries = 1};
  return scenario;
}

RunRecord Good() {
  RunRecord record;
  record.last.complete = true;
  record.last.observed.metrics = {{"auc", 0.92}, {"logLoss", 0.29}};
  record.last.observed.samples = record.last.observed.samples_total = 100;
  record.last.cost.spent_usd = 0.5;
  record.last.cost.saved_usd = 0.25;
  record.rescales = {{1, 2, "PriceChanged", 0.05, "", false, 0}};
  record.recoveries = {{2, 3, "MemberLost", 0.1, "", true, 1}};
  record.points = {{0, 0, 1, 25, 16, true},     {10, 10, 1, 25, 16, true},   {15, 10, 1, 25, 16, true},
                   {20, 300, 1, 25, 16, true},  {30, 500, 1, 25, 16, true},  {35, 550, 1, 40, 16, false},
                   {40, 600, 2, 40, 0, true},   {50, 700, 2, 40, 0, true},   {60, 999, 2, 40, 0, true},
                   {61, 1000, 3, 40, 0, true},  {62, 1100, 3, 40, 0, true},  {66, 1700, 3, 40, 0, true},
                   {70, 1800, 4, 40, 0, false}, {80, 1900, 4, 40, 0, false}, {90, 1900, 5, 40, 0, true}};
  record.seconds = 10;
  return record;
}

TEST(SummaryTest, AGoodRunHasNoFailures) {
  const Summary summary = Summarise(Good(), Expecting());
  EXPECT_THAT(summary.failures, IsEmpty());
  EXPECT_THAT(summary.lines, Contains(HasSubstr("0.5 spent; training cost 0.25 less than with the first plan")));
  // From 300 samples at 20 s to 500 at 30 s; then from 700 at 50 s to 999 at 60 s. Neither the switch, nor generation
  // 3, which trained for too short a time, nor generation 4, which lacks a member, nor the evaluation counts.
  EXPECT_THAT(summary.lines, Contains(HasSubstr("generation 1: 25 samples/s expected, 20 measured (-20 %)")));
  EXPECT_THAT(summary.lines, Contains(HasSubstr("generation 1: 16 samples/s predicted, 20 measured (+25 %)")));
  EXPECT_THAT(summary.lines, Not(Contains(HasSubstr("generation 2: 0 samples/s predicted"))));
  EXPECT_THAT(summary.lines, Contains(HasSubstr("generation 2: 40 samples/s expected, 30 measured (-25 %)")));
  EXPECT_THAT(summary.lines, Not(Contains(HasSubstr("generation 3:"))));
}

TEST(SummaryTest, SaysWhichModelWasExported) {
  RunRecord record = Good();
  ops::ObservedStatus& seen = record.last.observed;
  seen.metrics = {{"auc", 0.92}, {"logLoss", 0.29}, {"test_samples", 10}};
  seen.evaluations.resize(3);
  seen.best = ops::BestStatus{120, 3, "logLoss", 0.28, "Validation"};
  seen.exported = ops::ExportedStatus{"Best", 120, 3};
  EXPECT_THAT(
      Summarise(record, Expecting()).lines,
      testing::AllOf(
          Contains("exported model          the best one: step 120, epoch 3; logLoss 0.2800 on the validation data"),
          Not(Contains(HasSubstr("warning")))));
  seen.best->data = "Test";
  EXPECT_THAT(Summarise(record, Expecting()).lines, Contains(HasSubstr("the test data chose the model")));
  seen.exported = ops::ExportedStatus{"Last", 500, 5};
  EXPECT_THAT(Summarise(record, Expecting()).lines,
              testing::AllOf(Contains("exported model          the last one: step 500, epoch 5"),
                             Not(Contains(HasSubstr("warning")))));
  seen.metrics = {{"auc", 0.92}, {"logLoss", 0.29}, {"validation_samples", 10}};
  EXPECT_THAT(Summarise(record, Expecting()).lines,
              Contains(HasSubstr("validation auc          0.9200  (>= 0.9150 expected)")));
}

TEST(SummaryTest, AProgramHasNoModelAndAPauseUntilItsFirstStep) {
  RunRecord record = Good();
  record.last.of_program = true;
  record.last.observed.metrics = {};
  record.last.observed.last_checkpoint_step = 550;
  record.last.observed.exported = ops::ExportedStatus{"Last", 600, 1};  // of an older coordinator
  record.rescales.front().pause_seconds = 3.5;
  record.rescales.front().start_seconds = 2.4;
  EXPECT_THAT(
      Summarise(record, {}).lines,
      testing::AllOf(Contains("result                  what the program has saved; Medley has let it save at step "
                              "550 and before"),
                     Contains(HasSubstr("(PriceChanged), paused for 3500 ms (2400 ms of it from the program's "
                                        "start to its first step)")),
                     Not(Contains(HasSubstr("exported model")))));
}

TEST(SummaryTest, SaysHowManyRowsWereInMemory) {
  RunRecord record = Good();
  EXPECT_THAT(Summarise(record, {}).lines, Not(Contains(HasSubstr("embedding rows"))));
  record.last.observed.embeddings = ops::EmbeddingStatus{4096, 12288, 0.81};
  EXPECT_THAT(Summarise(record, {}).lines,
              Contains("embedding rows          81.0 % of the rows that steps used were in memory; 4,096 rows are in "
                       "memory, 12,288 only on the disk"));
}

TEST(SummaryTest, SaysWhereTablesOfGpusWere) {
  RunRecord record = Good();
  EXPECT_THAT(Summarise(record, {}).lines, Not(Contains(HasSubstr("embedding tables"))));
  record.last.observed.tables = ops::TablesStatus{"Cache", 0.81, "The plan has more."};
  EXPECT_THAT(
      Summarise(record, {}).lines,
      Contains("embedding tables        rows that are used often are in the GPU's memory; 81.0 % of the rows that "
               "steps used were there. The plan has more."));
}

TEST(SummaryTest, AllMetricsOfTheTaskAreShown) {
  RunRecord record = Good();
  record.last.observed.metrics = {{"mse", 1234567.25}, {"mae", 900.5}, {"r2", 0.875}, {"test_samples", 500}};
  Scenario scenario = Expecting();
  scenario.expect.metrics = {{"r2", 0.9}, {"mae", 1000}};
  const Summary summary = Summarise(record, scenario);
  EXPECT_THAT(summary.lines, Contains("test mse                1.23457e+06"));
  EXPECT_THAT(summary.lines, Contains("test mae                900.5000  (<= 1000 expected)"));
  EXPECT_THAT(summary.lines, Not(Contains(HasSubstr("test_samples"))));
  EXPECT_THAT(summary.failures, ElementsAre("test r2 is 0.8750, the scenario expects at least 0.9000"));
}

TEST(SummaryTest, EarlyStoppingIsNotAFailure) {
  RunRecord record = Good();
  record.last.observed.samples = 40;
  record.last.stopped_early = "stopped early at step 4: auc has not improved";
  const Summary summary = Summarise(record, Expecting());
  EXPECT_THAT(summary.failures, IsEmpty());
  EXPECT_THAT(summary.lines, Contains(HasSubstr("stopped early at step 4: auc has not improved")));
}

TEST(SummaryTest, EveryBrokenPromiseIsAFailure) {
  RunRecord record = Good();
  record.last.observed.samples = 99;
  EXPECT_THAT(Summarise(record, Expecting()).failures,
              ElementsAre(HasSubstr("99 samples trained, but rows x epochs is 100")));
  record = Good();
  record.last.observed.metrics["auc"] = 0.9;
  EXPECT_THAT(Summarise(record, Expecting()).failures, ElementsAre(HasSubstr("auc is 0.9000")));
  record = Good();
  record.last.observed.metrics["logLoss"] = 0.31;
  EXPECT_THAT(Summarise(record, Expecting()).failures, ElementsAre(HasSubstr("logLoss is 0.3100")));
  record = Good();
  record.last.observed.metrics.clear();
  EXPECT_THAT(Summarise(record, Expecting()).failures, Contains(HasSubstr("auc, but it was not measured")));
  record = Good();
  record.rescales.clear();
  EXPECT_THAT(Summarise(record, Expecting()).failures, ElementsAre(HasSubstr("rescale")));
  record.nothing_to_move_to = true;  // as the run has said when it set the goal
  EXPECT_THAT(Summarise(record, Expecting()).failures, IsEmpty());
  record = Good();
  record.recoveries.clear();
  EXPECT_THAT(Summarise(record, Expecting()).failures, ElementsAre(HasSubstr("recovery")));
  record = Good();
  record.last.complete = false;
  EXPECT_THAT(Summarise(record, Expecting()).failures, Contains(HasSubstr("not Complete")));
}

TEST(SummaryTest, NothingTrainedIsNotComplete) {
  RunRecord record;
  record.last.complete = true;
  EXPECT_THAT(Summarise(record, Scenario()).failures, Contains(HasSubstr("0 samples trained")));
}

TEST(SummaryTest, SaysWhenProbabilitiesAreNotToBeReadAsSuch) {
  RunRecord record = Good();
  record.last.observed.metrics["calibrationError"] = 0.04;
  EXPECT_THAT(Summarise(record, Expecting()).lines, Not(Contains(HasSubstr("probabilities differ"))));
  record.last.observed.metrics["calibrationError"] = 0.23;
  EXPECT_THAT(Summarise(record, Expecting()).lines,
              Contains(HasSubstr("probabilities differ from the rates of positives by 0.23 on average")));
}

}  // namespace
}  // namespace medley::cli
