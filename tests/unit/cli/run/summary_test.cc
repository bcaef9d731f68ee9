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
  scenario.expect = {.auc = 0.915, .log_loss = 0.30, .rescales = 1, .recoveries = 1};
  return scenario;
}

RunRecord Good() {
  RunRecord record;
  record.last.complete = true;
  record.last.observed.metrics = {{"auc", 0.92}, {"log_loss", 0.29}};
  record.last.observed.samples = record.last.observed.samples_total = 100;
  record.last.cost.spent_usd = 0.5;
  record.last.cost.saved_usd = 0.25;
  record.rescales = {{1, 2, "PriceChanged", 0.05, "", false, 0}};
  record.recoveries = {{2, 3, "MemberLost", 0.1, "", true, 1}};
  record.points = {{0, 0, 1, 25, true},   {1, 10, 1, 25, true},    {1.5, 10, 1, 25, true}, {2, 30, 1, 25, true},
                   {3, 50, 1, 25, true},  {3.5, 55, 1, 40, false}, {4, 60, 2, 40, true},   {5, 70, 2, 40, true},
                   {6, 100, 2, 40, true}, {7, 101, 3, 40, false},  {8, 102, 3, 40, false}, {9, 102, 4, 40, true}};
  record.seconds = 10;
  return record;
}

TEST(SummaryTest, AGoodRunHasNoFailures) {
  const Summary summary = Summarise(Good(), Expecting());
  EXPECT_THAT(summary.failures, IsEmpty());
  EXPECT_THAT(summary.lines, Contains(HasSubstr("0.5 spent; the first plan would have cost 0.75")));
  // From 30 samples at 2 s to 50 at 3 s; then from 70 at 5 s to 100 at 6 s. Neither the switch, nor generation 3, which
  // lacks a member, nor the evaluation counts.
  EXPECT_THAT(summary.lines, Contains(HasSubstr("generation 1: 25 samples/s expected, 20 measured (-20 %)")));
  EXPECT_THAT(summary.lines, Contains(HasSubstr("generation 2: 40 samples/s expected, 30 measured (-25 %)")));
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
  record.last.observed.metrics["log_loss"] = 0.31;
  EXPECT_THAT(Summarise(record, Expecting()).failures, ElementsAre(HasSubstr("log_loss is 0.3100")));
  record = Good();
  record.last.observed.metrics.clear();
  EXPECT_THAT(Summarise(record, Expecting()).failures, Contains(HasSubstr("auc, but it was not measured")));
  record = Good();
  record.rescales.clear();
  EXPECT_THAT(Summarise(record, Expecting()).failures, ElementsAre(HasSubstr("rescale")));
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

}  // namespace
}  // namespace medley::cli
