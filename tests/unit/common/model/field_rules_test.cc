// Bounds and enumerations come from the schema, and what C++ knows by name is what the schema names.
#include "common/model/field_rules.h"

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

TEST(FieldRulesTest, BoundsAreThoseOfTheSchema) {
  const std::string epochs = "spec.training.epochs";
  EXPECT_TRUE(InBounds(epochs, 1).ok() && InBounds(epochs, 1000000).ok());
  EXPECT_EQ(base::Message(InBounds(epochs, 0)), "spec.training.epochs: 0 is not between 1 and 1000000");
  EXPECT_EQ(base::Message(InBounds(epochs, 1000001)), "spec.training.epochs: 1000001 is not between 1 and 1000000");
  EXPECT_EQ(base::Message(InBounds("spec.training.clipNorm", 0)), "spec.training.clipNorm: 0 is not above 0");
  EXPECT_EQ(base::Message(InBounds("spec.training.optimizer.beta1", 1.0)),
            "spec.training.optimizer.beta1: 1 is not in [0, 1)");
  EXPECT_EQ(base::Message(InBounds("spec.model.layers[3].out", 0)),
            "spec.model.layers[3].out: 0 is not between 1 and 1048576");
  EXPECT_EQ(base::Message(InBounds("spec.data.inputs[0].std[7]", -0.5)),
            "spec.data.inputs[0].std[7]: -0.5 is not above 0");
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (const char* path : {"spec.training.epochs", "spec.training.clipNorm", "spec.training.optimizer.beta1"}) {
    EXPECT_FALSE(InBounds(path, kNan).ok()) << path;
    EXPECT_FALSE(InBounds(path, std::numeric_limits<double>::infinity()).ok()) << path;
  }
  EXPECT_EQ(Most("spec.training.classWeights.weights{}"), 1e6);
}

TEST(FieldRulesTest, EnumerationsAndLengthsAreThoseOfTheSchema) {
  EXPECT_TRUE(OneOf("spec.model.layers[0].activation", "").ok());
  EXPECT_EQ(base::Message(OneOf("spec.model.loss", "hinge")), "spec.model.loss: 'hinge' is not one of mse, mae");
  EXPECT_TRUE(ItemsInBounds("spec.data.inputs", 64).ok());
  EXPECT_EQ(base::Message(ItemsInBounds("spec.data.inputs", 65)),
            "spec.data.inputs: has 65 items, but must have from 1 to 64");
}

TEST(FieldRulesDeathTest, APathWithoutAFieldIsABug) {
  EXPECT_DEATH((void)InBounds("spec.training.epoch", 1), "the schema of TrainingJob has no spec.training.epoch");
}

TEST(FieldRulesTest, WhatCodeNamesIsWhatTheSchemaNames) {
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

TEST(FieldRulesTest, EveryPathOfTheSchemaIsVisited) {
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

TEST(FieldRulesTest, MembersHaveTheDefaultsOfTheSchema) {
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
