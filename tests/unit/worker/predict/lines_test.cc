#include "worker/predict/lines.h"

#include <gtest/gtest.h>

#include <cmath>

namespace medley::worker {
namespace {

std::string Line(const ExportedModel& model, const std::vector<float>& logits, bool all = false) {
  std::string text;
  PredictionLines(model, all).Append(logits, text);
  return text;
}

TEST(PredictionLinesTest, BinaryIsAProbability) {
  ExportedModel model;
  EXPECT_EQ(Line(model, {0}), "0.5\n");
  EXPECT_EQ(Line(model, {1000}), "1\n");
  EXPECT_EQ(Line(model, {-1000}), "0\n");
}

TEST(PredictionLinesTest, RegressionIsInTheUnitOfTheLabel) {
  ExportedModel model;
  model.schema.task = model::Task::kRegression;
  model.transform.label = {.mean = 20, .deviation = 10};
  EXPECT_EQ(Line(model, {-1.5F}), "5\n");
  model.transform.label = {.mean = std::log(8.0), .deviation = std::log(2.0), .log = true};
  EXPECT_EQ(Line(model, {0}), "7\n");
  EXPECT_EQ(Line(model, {1}), "15\n");
}

TEST(PredictionLinesTest, AClassIsAFieldOfACsvFileWithItsProbability) {
  ExportedModel model;
  model.schema.task = model::Task::kMultiClass;
  model.transform.label.classes = {"red", "say \"a, b\"", "x"};
  EXPECT_EQ(Line(model, {1000, 0, -1000}), "red,1\n");
  EXPECT_EQ(Line(model, {0, 1000, 0}), "\"say \"\"a, b\"\"\",1\n");
  const float logit = std::log(2.0F);
  EXPECT_EQ(Line(model, {logit, 0, 0}, true), "0.5,0.25,0.25\n");
  EXPECT_EQ(Line(model, {0, 1000, 0}, true), "0,1,0\n");
}

TEST(PredictionLinesTest, SeveralLabelsAreSeveralProbabilities) {
  ExportedModel model;
  model.schema.task = model::Task::kMultiLabel;
  EXPECT_EQ(Line(model, {0, 1000, -1000}), "0.5,1,0\n");
}

}  // namespace
}  // namespace medley::worker
