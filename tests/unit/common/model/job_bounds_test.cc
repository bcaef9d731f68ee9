// Bounds and enumerations come from the schema, and what C++ knows by name is what the schema names.
#include "common/model/job_bounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/model/job_schema.h"
#include "common/model/job_spec.h"

namespace medley::model {
namespace {

using nlohmann::json;

const json& At(const char* pointer) { return JobSchema().at(json::json_pointer(pointer)); }

// The message of the first field that the schema does not allow.
std::string Refused(const json& spec) { return std::string(base::Message(CheckJobFields(spec))); }

TEST(JobBoundsTest, BoundsAreThoseOfTheSchema) {
  const auto epochs = [](double number) { return Refused({{"training", {{"epochs", number}}}}); };
  const auto optimizer = [](const char* name, double number) {
    return Refused({{"training", {{"optimizer", {{name, number}}}}}});
  };
  EXPECT_EQ(Refused({{"training", {{"epochs", 1}}}}), "");
  EXPECT_EQ(Refused({{"training", {{"epochs", 0}}}}),
            "spec.training.epochs: must be at least 1 and at most 1000000, is 0");
  EXPECT_EQ(Refused({{"training", {{"epochs", 1000001}}}}),
            "spec.training.epochs: must be at least 1 and at most 1000000, is 1000001");
  EXPECT_EQ(epochs(1.5), "spec.training.epochs: must be of type integer, is 1.5");
  EXPECT_EQ(Refused({{"training", {{"clipNorm", 0}}}}).substr(0, 45), "spec.training.clipNorm: must be greater than ");
  EXPECT_EQ(optimizer("beta1", 1), "spec.training.optimizer.beta1: must be at least 0 and less than 1, is 1");
  EXPECT_EQ(optimizer("beta1", 0.999), "");
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (const double number : {kNan, std::numeric_limits<double>::infinity()}) {
    EXPECT_NE(epochs(number), "");
    EXPECT_NE(optimizer("beta1", number), "");
  }
  EXPECT_EQ(Refused({{"training", {{"classWeights", {{"weights", {{"no", -1}}}}}}}}),
            "spec.training.classWeights.weights.no: must be at least 0 and at most 1000000, is -1");
}

TEST(JobBoundsTest, EnumerationsLengthsPatternsAndRequiredFieldsAreThoseOfTheSchema) {
  const auto layer = [](const json& value) { return Refused({{"model", {{"layers", {value}}}}}); };
  EXPECT_EQ(layer({{"name", "a"}, {"kind", "Loss"}, {"activation", ""}}), "");
  EXPECT_EQ(layer({{"kind", "Loss"}}), "spec.model.layers[0].name: is required");
  EXPECT_EQ(layer({{"kind", "Loss"}, {"name", ""}}),
            "spec.model.layers[0].name: must have at least 1 and at most 63 characters, has 0");
  EXPECT_EQ(Refused({{"model", {{"loss", "hinge"}}}}), "spec.model.loss: 'hinge' is not one of mse, mae");
  EXPECT_EQ(Refused({{"export", "First"}}), "spec.export: 'First' is not one of Best, Last");
  EXPECT_THAT(Refused({{"checkpoint", {{"interval", "soon"}}}}), testing::HasSubstr("interval: must be of the form "));
  json data = {{"train", {{"format", "npy"}}}, {"inputs", json::array()}};
  for (int i = 0; i < 65; ++i) data["inputs"].push_back({{"name", "x"}, {"type", "float32"}});
  EXPECT_EQ(Refused({{"data", data}}), "spec.data.inputs: must have at least 1 and at most 64 items, has 65");
  data["inputs"] = json::array({{{"name", "x"}, {"type", "float32"}, {"std", {1, 0}}}});
  EXPECT_THAT(Refused({{"data", data}}), testing::StartsWith("spec.data.inputs[0].std[1]: must be greater than 0"));
}

// The operator's own fields are not of a JobSpec, and an older or newer program may write others.
TEST(JobBoundsTest, OtherFieldsAreNotChecked) {
  EXPECT_EQ(Refused({{"objective", {{"minThroughput", -1}}}, {"unknown", -1}, {"training", {{"unknown", -1}}}}), "");
  EXPECT_EQ(Refused({{"data", {{"train", {{"format", "csv"}}}, {"volume", {{"mountPath", 7}}}}}}), "");
  EXPECT_EQ(Refused({{"training", nullptr}, {"checkpoint", {{"keep", nullptr}}}}), "");
}

TEST(JobBoundsTest, ColumnsOfRangesHaveTheBoundsOfColumns) {
  EXPECT_TRUE(CheckColumn("x", 0).ok() && CheckColumn("x", 65535).ok());
  EXPECT_EQ(base::Message(CheckColumn("x", 65536)), "x: must be at least 0 and at most 65535, is 65536");
  EXPECT_EQ(MostNumbersOfInput(), At("/properties/data/properties/inputs/items/properties/shape/items/maximum"));
}

TEST(JobBoundsTest, WhatCodeNamesIsWhatTheSchemaNames) {
  std::set<std::string> tasks, metrics;
  for (const Task task : {Task::kBinary, Task::kRegression, Task::kMultiClass, Task::kMultiLabel, Task::kOwnLoss}) {
    tasks.insert(TaskName(task));
    for (const std::string& metric : TaskMetrics(task)) metrics.insert(metric);
  }
  EXPECT_EQ(At("/properties/model/properties/task/enum").get<std::set<std::string>>(), tasks);
  const json& training = At("/properties/training/properties");
  EXPECT_EQ(training["evaluation"]["properties"]["metric"]["enum"].get<std::set<std::string>>(), metrics);
  EXPECT_EQ(training["earlyStopping"]["properties"]["metric"]["enum"].get<std::set<std::string>>(), metrics);
  EXPECT_EQ(At("/properties/data/properties/schema/properties/label/properties/classes/maxItems"), kMostClasses);
}

// Adds a value at each path of the schema to `spec`, and to `paths` what it is.
void AddPaths(const json& schema, const json::json_pointer& at, json& spec, std::vector<std::string>& paths) {
  if (schema.value("x-path", false)) {
    paths.push_back(at.to_string());
    spec[at] = paths.back();
  }
  if (schema.contains("properties")) {
    for (const auto& [name, field] : schema["properties"].items()) AddPaths(field, at / name, spec, paths);
  }
  if (schema.contains("items")) AddPaths(schema["items"], at / 0, spec, paths);
  if (schema.contains("additionalProperties") && schema["additionalProperties"].is_object()) {
    AddPaths(schema["additionalProperties"], at / "any", spec, paths);
  }
}

TEST(JobBoundsTest, EveryPathOfTheSchemaIsVisited) {
  json spec = json::object();
  std::vector<std::string> expected, visited;
  AddPaths(JobSchema(), json::json_pointer(), spec, expected);
  EXPECT_THAT(expected, testing::IsSupersetOf({"/model/initialFrom", "/checkpoint/from", "/data/train/files/any",
                                               "/data/test/labels", "/model/exported/uri"}));
  spec["model"]["name"] = "mlp";
  spec["data"]["train"]["format"] = "csv";
  ForEachPath(spec, [&](std::string& path) { visited.push_back(std::exchange(path, "seen")); });
  EXPECT_EQ(visited, expected);
  EXPECT_EQ(spec["model"]["initialFrom"], "seen");
  EXPECT_EQ(spec["data"]["train"]["files"]["any"], "seen");
  EXPECT_EQ(spec["model"]["name"], "mlp");
  json strange = json::parse(R"({"model": "x", "data": {"train": [], "test": {"uri": 7, "files": "y"}}, "other": {}})");
  const json before = strange;
  ForEachPath(strange, [](std::string& path) { path = "seen"; });
  EXPECT_EQ(strange, before);
}

TEST(JobBoundsTest, MembersHaveTheDefaultsOfTheSchema) {
  const JobSpec spec;
  const json& training = At("/properties/training/properties");
  EXPECT_EQ(training["epochs"]["default"], spec.training.epochs);
  EXPECT_EQ(training["batchSize"]["default"], spec.training.batch_size);
  EXPECT_EQ(training["optimizer"]["properties"]["name"]["default"], spec.training.optimizer);
  EXPECT_EQ(training["optimizer"]["properties"]["learningRate"]["default"], spec.training.learning_rate);
  EXPECT_EQ(At("/properties/checkpoint/properties/interval/default"), "60s");
  EXPECT_EQ(spec.checkpoint.interval_seconds, 60);
}

}  // namespace
}  // namespace medley::model
