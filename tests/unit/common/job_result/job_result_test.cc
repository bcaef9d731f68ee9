#include "common/job_result/job_result.h"

#include <gmock/gmock.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "common/base/testing/status_matchers.h"
#include "common/base/utf8.h"

namespace medley::job_result {
namespace {

using base::IsOkAndHolds;
using base::StatusIs;
using testing::HasSubstr;
using Json = nlohmann::json;

constexpr char kUid[] = "11111111-2222-3333-4444-555555555555";

JobResult Finished() {
  JobResult result;
  result.job_uid = kUid;
  result.step = 40;
  result.samples = 10240;
  result.samples_total = 10240;
  result.epoch = result.epochs = 3;
  result.bad_rows = 2;
  result.last_checkpoint_step = 40;
  result.loss = 0.25;
  result.stopped_early = true;
  result.metrics = {{"auc", 0.875}, {"loss", 0.5}};
  result.best = Best{30, 2, "auc", 0.875, true};
  result.exported = Exported{30, 2, true};
  result.reason = "auc has not improved for 2 evaluations";
  return result;
}

// Everything is as long as it may be, and more: 32 metrics with the longest names and numbers, a UID and a reason of
// characters that JSON escapes.
JobResult Longest() {
  JobResult result = Finished();
  for (int i = 0; i < 40; ++i) {
    result.metrics[std::string(63, static_cast<char>('a' + i % 26)) + (i < 26 ? "0" : "1")] = -1.2345678901234567e-300;
  }
  result.job_uid = std::string(128, '"');
  result.reason = std::string(5000, '\x01');
  return result;
}

Json TreeOf(const JobResult& result) { return Json::parse(ToText(result)); }

absl::StatusOr<JobResult> ParseWith(const Json& patch) {
  Json tree = TreeOf(Finished());
  tree.merge_patch(patch);
  return Parse(tree.dump(), kUid);
}

TEST(JobResultTest, TextHoldsTheWholeResult) { EXPECT_THAT(Parse(ToText(Finished()), kUid), IsOkAndHolds(Finished())); }

TEST(JobResultTest, EachPhaseIsReadBack) {
  for (const Phase phase : {Phase::kComplete, Phase::kFailed, Phase::kSuspended}) {
    JobResult result = Finished();
    result.phase = phase;
    EXPECT_THAT(Parse(ToText(result), kUid), IsOkAndHolds(result));
  }
}

TEST(JobResultTest, JobWithoutResultsNeedsNoMoreThanItsPhase) {
  const JobResult result{.job_uid = kUid, .phase = Phase::kFailed};
  EXPECT_THAT(Parse(ToText(result), kUid), IsOkAndHolds(result));
  EXPECT_THAT(Parse(R"({"job":"u","phase":"Failed"})", "u"), base::IsOk());
}

TEST(JobResultTest, NumbersThatAreNotFiniteAreLeftOut) {
  JobResult result = Finished();
  result.loss = std::numeric_limits<double>::quiet_NaN();
  result.metrics["auc"] = std::numeric_limits<double>::infinity();
  result.best->value = -std::numeric_limits<double>::infinity();
  const absl::StatusOr<JobResult> read = Parse(ToText(result), kUid);
  ASSERT_THAT(read, base::IsOk());
  EXPECT_EQ(read->loss, std::nullopt);
  EXPECT_EQ(read->metrics, (std::map<std::string, double>{{"loss", 0.5}}));
  EXPECT_EQ(read->best, std::nullopt);
}

TEST(JobResultTest, BytesOfTheReasonThatAreNotUtf8AreEscaped) {
  JobResult result = Finished();
  result.reason = "reading \xff\xfe.csv";
  const absl::StatusOr<JobResult> read = Parse(ToText(result), kUid);
  ASSERT_THAT(read, base::IsOk());
  EXPECT_EQ(read->reason, "reading \\xff\\xfe.csv");
}

TEST(JobResultTest, ReasonIsCutBetweenCharacters) {
  JobResult result = Finished();
  for (const char* padding : {"", "a", "ab"}) {
    result.reason = padding;
    while (result.reason.size() < 4000) result.reason += "\xe2\x82\xac";
    const absl::StatusOr<JobResult> read = Parse(ToText(result), kUid);
    ASSERT_THAT(read, base::IsOk());
    EXPECT_LE(read->reason.size(), kMostReasonBytes);
    EXPECT_GT(read->reason.size(), kMostReasonBytes - 3);
    EXPECT_TRUE(base::IsUtf8(read->reason));
  }
}

TEST(JobResultTest, WhatDoesNotFitIsDroppedInTheStatedOrder) {
  const std::string text = ToText(Longest());
  EXPECT_LE(text.size(), kMostBytes);
  const absl::StatusOr<JobResult> read = Parse(text, Longest().job_uid);
  ASSERT_THAT(read, base::IsOk());
  EXPECT_EQ(read->step, 40);
  EXPECT_EQ(read->reason.size(), 128);       // first the reason,
  EXPECT_LT(read->metrics.size(), 32);       // then metrics, from the last name on,
  EXPECT_EQ(read->metrics.count("auc"), 1);  // and the rest only without any
  EXPECT_EQ(read->best, Longest().best);
  EXPECT_EQ(read->exported, Longest().exported);
}

TEST(JobResultTest, EveryReasonFits) {
  JobResult result = Longest();
  result.job_uid = std::string(100'000, '"');
  result.best->metric = std::string(kMostNameBytes, '\x01');
  EXPECT_LE(ToText(result).size(), kMostBytes);
}

struct Refused {
  const char* name;
  Json patch;
  const char* why;
};

class RefusedResultTest : public testing::TestWithParam<Refused> {};

TEST_P(RefusedResultTest, FieldIsNamed) {
  EXPECT_THAT(ParseWith(GetParam().patch), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(GetParam().why)));
}

Json ManyMetrics() {
  Json metrics = Json::object();
  for (int i = 0; i < 33; ++i) metrics["m" + std::to_string(i)] = i;
  return {{"metrics", metrics}};
}

INSTANTIATE_TEST_SUITE_P(
    All, RefusedResultTest,
    testing::Values(Refused{"NoPhase", {{"phase", nullptr}}, "phase"},
                    Refused{"OtherPhase", {{"phase", "complete"}}, "phase: must be Complete, Failed or Suspended"},
                    Refused{"PhaseIsNumber", {{"phase", 7}}, "phase"}, Refused{"NoJob", {{"job", nullptr}}, "job"},
                    Refused{"StepIsNegative", {{"step", -1}}, "step: must be from 0 to 9007199254740992"},
                    Refused{"StepIsHuge", {{"step", 1e30}}, "step"}, Refused{"StepIsText", {{"step", "40"}}, "step"},
                    Refused{"StepBeyond64Bits", {{"step", uint64_t{1} << 63}}, "step"},
                    Refused{
                        "EpochsBeyond32Bits", {{"epochs", int64_t{1} << 31}}, "epochs: must be from 0 to 2147483647"},
                    Refused{"MetricForTerminals", {{"metrics", {{"\x1b[2J", 1}}}}, "metrics: a name"},
                    Refused{"MoreSamplesThanThereAre", {{"samples", 10241}}, "samples: is more than samplesTotal"},
                    Refused{"LossIsText", {{"loss", "NaN"}}, "loss"},
                    Refused{"MetricIsText", {{"metrics", {{"auc", "1"}}}}, "metrics: must have numbers only"},
                    Refused{"MetricsAreList", {{"metrics", {1, 2}}}, "metrics: must be an object"},
                    Refused{"MetricWithoutName", {{"metrics", {{"", 1}}}}, "metrics: a name"},
                    Refused{"ManyMetrics", ManyMetrics(), "metrics: has more than 32 entries"},
                    Refused{"BestIsText", {{"best", "x"}}, "best"},
                    Refused{"BestWithoutMetric", {{"best", {{"metric", nullptr}}}}, "best.metric"},
                    Refused{"BestWithoutValue", {{"best", {{"value", nullptr}}}}, "best.value"},
                    Refused{"ExportBeforeTheStart", {{"export", {{"step", -2}}}}, "export.step"}),
    [](const auto& each) { return each.param.name; });

TEST(JobResultTest, RefusesOtherTexts) {
  const std::string text = ToText(Finished());
  for (const std::string& wrong :
       {std::string(), std::string("medley-worker: coordinator: no space left"), text.substr(1),
        text.substr(0, text.size() - 1), text + text, "[" + text + "]", std::string(4096, '['), std::string(4096, '\0'),
        std::string(4096, '\xff'), text + std::string(4096, ' '),
        std::string(R"({"job":"u","phase":"Complete","step":NaN})"),
        std::string(R"({"job":"u","phase":"Complete","metrics":{"auc":1e999}})"),
        std::string(R"({"job":"u","phase":"Complete","phase":"Failed"})")}) {
    EXPECT_THAT(Parse(wrong, kUid), StatusIs(absl::StatusCode::kInvalidArgument)) << wrong.substr(0, 80);
  }
}

TEST(JobResultTest, ResultOfAnotherJobIsRefused) {
  EXPECT_THAT(Parse(ToText(Finished()), "another"),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("another job")));
}

TEST(JobResultTest, FieldsOfNewerCoordinatorsAreIgnored) {
  EXPECT_THAT(ParseWith({{"throughput", 12.5}, {"tokens", {{"total", 3}}}}), IsOkAndHolds(Finished()));
}

}  // namespace
}  // namespace medley::job_result
