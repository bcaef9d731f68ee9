#include <gmock/gmock.h>

#include "cli/run/sweep_grid.h"
#include "cli/run/sweep_result.h"
#include "common/base/testing/status_matchers.h"

namespace medley::cli {
namespace {

using base::StatusIs;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr auto kNoSweep = absl::StatusCode::kInvalidArgument;

kube::Object SweptJob() {
  return kube::Object(
      kube::Json::parse(R"({"kind": "TrainingJob", "metadata": {"name": "people", "namespace": "default"},
      "spec": {"model": {"name": "mlp"}, "training": {"batchSize": 64}}})"));
}

TEST(SweepGridTest, ReadsValuesAsYaml) {
  const auto rate = ParseAxis("training.optimizer.learningRate=0.1,3e-2");
  ASSERT_THAT(rate, base::IsOk());
  EXPECT_EQ(rate->field, "training.optimizer.learningRate");
  EXPECT_THAT(rate->values, ElementsAre(kube::Json(0.1), kube::Json(0.03)));
  const auto hidden = ParseAxis("spec.model.parameters.hidden=[64],[64,32]");
  ASSERT_THAT(hidden, base::IsOk());
  EXPECT_EQ(hidden->field, "model.parameters.hidden");
  EXPECT_THAT(hidden->values, ElementsAre(kube::Json({64}), kube::Json({64, 32})));
  EXPECT_THAT(ParseAxis(R"(training.optimizer.name="a,b",adam)")->values, ElementsAre("a,b", "adam"));
}

TEST(SweepGridTest, RefusesUnknownFieldsAndInvalidValues) {
  for (const char* text : {"", "rate", "=1", "a..b=1", "a b=1", "a=", "a=1,,2", "a=1,1", "a=[1", "a[0]=1"}) {
    EXPECT_THAT(ParseAxis(text), StatusIs(kNoSweep, HasSubstr("such as training.optimizer.learningRate=0.1,0.03")))
        << text;
  }
}

TEST(SweepGridTest, TrialsAreAllCombinations) {
  const auto trials =
      MakeTrials(SweptJob(), {*ParseAxis("training.batchSize=32,64"), *ParseAxis("training.optimizer.name=sgd,adam")});
  ASSERT_THAT(trials, base::IsOk());
  ASSERT_EQ(trials->size(), 4U);
  EXPECT_EQ((*trials)[0].name, "people-1");
  EXPECT_EQ((*trials)[2].job.At("/spec/training"),
            kube::Json::parse(R"({"batchSize": 64, "optimizer": {"name": "sgd"}})"));
  EXPECT_EQ((*trials)[3].job.String("/spec/training/optimizer/name"), "adam");
  EXPECT_EQ((*trials)[3].job.key().name, "people-4");
  EXPECT_EQ((*trials)[3].job.String("/spec/model/name"), "mlp");
}

TEST(SweepGridTest, TrialsAreBounded) {
  EXPECT_THAT(MakeTrials(SweptJob(), {}), StatusIs(kNoSweep, HasSubstr("at least one --set")));
  EXPECT_THAT(MakeTrials(SweptJob(), {*ParseAxis("a=1"), *ParseAxis("spec.a=2")}),
              StatusIs(kNoSweep, HasSubstr("twice")));
  EXPECT_THAT(MakeTrials(SweptJob(), {*ParseAxis("model.name.x=1")}), StatusIs(kNoSweep, HasSubstr("no object")));
  std::string many = "a=0";
  for (int i = 1; i < 17; ++i) many += "," + std::to_string(i);
  std::vector<SweepAxis> axes = {*ParseAxis(many)};
  EXPECT_THAT(MakeTrials(SweptJob(), axes), base::IsOk());
  for (const char* field : {"b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q"}) {
    axes.push_back(axes.front());  // 17^17 would overflow
    axes.back().field = field;
  }
  EXPECT_THAT(MakeTrials(SweptJob(), axes), StatusIs(kNoSweep, HasSubstr("more than 256 combinations")));
}

TEST(SweepGridTest, NamesOfColumnsAreShortWhereTheyCan) {
  EXPECT_THAT(ShortNames({{"training.batchSize", {}}, {"a.name", {}}, {"b.name", {}}}),
              ElementsAre("batchSize", "a.name", "b.name"));
}

Snapshot ViewOf(const std::vector<double>& losses, bool complete) {
  Snapshot view;
  view.complete = complete;
  for (size_t i = 0; i < losses.size(); ++i) {
    ops::EvaluationStatus evaluation;
    evaluation.epochs = static_cast<int>(i) + 1;
    evaluation.metrics = {{"logLoss", losses[i]}, {"auc", 0.9}, {"test_samples", 5}};
    view.observed.evaluations.push_back(evaluation);
  }
  return view;
}

std::vector<TrialResult> ResultsOf(const std::string& axis) {
  const std::vector<Trial> trials = *MakeTrials(SweptJob(), {*ParseAxis(axis)});
  std::vector<TrialResult> results;
  for (const Trial& trial : trials) results.push_back({trial});
  return results;
}

TEST(SweepResultTest, TheMetricIsTheUsersOrThatOfTheJob) {
  EXPECT_EQ(SweepMetric("logLoss", SweptJob(), {}), "logLoss");
  kube::Object job = SweptJob();
  job.mutable_json()["spec"]["training"]["earlyStopping"]["metric"] = "logLoss";
  EXPECT_EQ(SweepMetric("", job, {}), "logLoss");
  EXPECT_EQ(SweepMetric("", SweptJob(), {}), "");
  EXPECT_EQ(SweepMetric("", SweptJob(), ViewOf({0.5}, false)), "auc");
}

TEST(SweepResultTest, TheBestEvaluationCounts) {
  std::vector<TrialResult> results = ResultsOf("training.batchSize=8,16,32,64");
  TakeResult(ViewOf({0.5, 0.3, 0.4}, true), "logLoss", results[0]);
  EXPECT_EQ(results[0].value, 0.3);
  EXPECT_EQ(results[0].best_epoch, 2);
  TakeResult(ViewOf({0.2}, false), "logLoss", results[1]);  // better, but not complete
  results[1].status = TrialResult::Status::kRunning;
  TakeResult(ViewOf({0.25}, true), "logLoss", results[2]);
  Snapshot failed;
  failed.failed = true;
  failed.problem = "the loss is not a number";
  TakeResult(failed, "logLoss", results[3]);
  EXPECT_EQ(BestTrial(results, "logLoss"), 2U);
  results[2].seconds = 12.34;
  EXPECT_EQ(SweepTable(results, {"batchSize"}, "logLoss"),
            "TRIAL     batchSize  logLoss  BEST EPOCH  SECONDS  STATUS\n"
            "people-2  16         0.2000   1           -        running\n"
            "people-3  32         0.2500   1           12.3     complete\n"
            "people-1  8          0.3000   2           -        complete\n"
            "people-4  64         -        -           -        failed: the loss is not a number\n");
  const kube::Json json = SweepJson(results, "logLoss");
  EXPECT_EQ(json["best"], "people-3");
  EXPECT_EQ(json["metric"], "logLoss");
  EXPECT_EQ(json["trials"][3]["message"], "the loss is not a number");
  EXPECT_EQ(json["trials"][2]["settings"]["spec.training.batchSize"], 8);
  EXPECT_EQ(BestTrial({results[3]}, "logLoss"), std::nullopt);
  EXPECT_FALSE(SweepJson({results[3]}, "logLoss").contains("best"));
}

TEST(SweepResultTest, LargerIsBetterForQualities) {
  std::vector<TrialResult> results = ResultsOf("training.batchSize=8,16");
  for (size_t i = 0; i < 2; ++i) {
    results[i].status = TrialResult::Status::kComplete;
    results[i].value = i == 0 ? 0.7 : 0.8;
  }
  EXPECT_EQ(BestTrial(results, "auc"), 1U);
  EXPECT_EQ(BestTrial(results, "mse"), 0U);
}

}  // namespace
}  // namespace medley::cli
