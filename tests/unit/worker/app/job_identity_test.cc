#include "worker/app/job_identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "worker/checkpoint/settings.h"

namespace medley::worker {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const char kSpec[] = R"({
  "model": {"name": "ctrdnn", "parameters": {"embeddingDim": 8, "embeddingRows": 1024, "hidden": [64, 32]}},
  "data": {"train": {"uri": "file:///data/a.csv", "format": "csv"}, "test": {"uri": "file:///data/t.csv", "format": "csv"},
           "validation": {"fraction": 0.1}, "schema": {"label": {"column": 3}, "numeric": [0, 1], "categorical": [2]},
           "volume": {"hostPath": {"path": "/d"}, "mountPath": "/data"}},
  "training": {"epochs": 3, "batchSize": 512, "optimizer": {"name": "adagrad", "learningRate": 0.05}, "seed": 1,
               "evaluation": {"everyEpochs": 1}}
})";

// kSpec with another value at `pointer`.
JobIdentity JobWith(const char* pointer, const json& value) {
  json spec = json::parse(kSpec);
  if (*pointer != '\0') spec[json::json_pointer(pointer)] = value;
  return IdentityOf(spec.dump());
}

struct Change {
  const char* pointer;
  json value;
  std::string words;
};

TEST(JobIdentityTest, WhatChangesTheFingerprintIsNamedWithBothValues) {
  const JobIdentity before = JobWith("", {});
  for (const Change& change : std::vector<Change>{
           {"/training/batchSize", 256, "spec.training.batchSize is 512 in the checkpoint and 256 in this job"},
           {"/training/seed", 2, "spec.training.seed is 1 in the checkpoint and 2 in this job"},
           {"/training/clipNorm", 1.5, "spec.training.clipNorm is not set in the checkpoint and 1.5 in this job"},
           {"/training/optimizer/name", "sgd",
            R"(optimizer.name is "adagrad" in the checkpoint and "sgd" in this job)"},
           {"/training/optimizer/learningRate", 0.1, "optimizer.learningRate is 0.05 in the checkpoint and 0.1 in"},
           {"/training/optimizer/schedule", {{"kind", "cosine"}, {"steps", 9}}, R"(schedule.kind is not set in the)"},
           {"/training/classWeights",
            {{"balanced", true}},
            "classWeights.balanced is not set in the checkpoint and true"},
           {"/model/name", "residual", R"(spec.model.name is "ctrdnn" in the checkpoint and "residual" in this job)"},
           {"/model/initialFrom", "/models/a", "spec.model.initialFrom is not set in the checkpoint and"},
           {"/model/parameters/hidden", {64, 16}, "spec.model.parameters.hidden[1] is 32 in the checkpoint and 16 in"},
           {"/model/parameters/embeddingRows", 2048, "embeddingRows is 1024 in the checkpoint and 2048 in this job"},
           {"/data/train/uri", "file:///data/b.csv",
            R"(uri is "file:///data/a.csv" in the checkpoint and "file:///data/b)"},
           {"/data/validation/fraction", 0.2,
            "spec.data.validation.fraction is 0.1 in the checkpoint and 0.2 in this job"},
           {"/data/schema/numeric", {0}, "spec.data.schema.numeric is [0,1] in the checkpoint and [0] in this job"},
           {"/data/schema/missing",
            {"x"},
            R"(spec.data.schema.missing is not set in the checkpoint and ["x"] in this)"},
           {"/data/schema/label/column", 4, "spec.data.schema.label.column is 3 in the checkpoint and 4 in this job"},
       }) {
    const JobIdentity after = JobWith(change.pointer, change.value);
    EXPECT_NE(after.model, before.model) << change.pointer;
    EXPECT_THAT(WhyOtherSettings(before.settings, after.settings), HasSubstr(change.words));
  }
}

TEST(JobIdentityTest, SettingsThatAJobMayChangeAreNotAmongThem) {
  const JobIdentity before = JobWith("", {});
  for (const Change& change : std::vector<Change>{
           {"/training/epochs", 9, ""},
           {"/training/microBatches", 2, ""},
           {"/training/tensorBoard", true, ""},
           {"/training/evaluation/everyEpochs", 2, ""},
           {"/training/earlyStopping", {{"metric", "auc"}, {"patience", 2}}, ""},
           {"/data/test/uri", "file:///data/u.csv", ""},
           {"/data/maxBadRows", 7, ""},
           {"/data/volume/hostPath/path", "/e", ""},
           {"/checkpoint", {{"keep", 5}}, ""},
           {"/objective", {{"deadline", "1h"}}, ""},
       }) {
    const JobIdentity after = JobWith(change.pointer, change.value);
    EXPECT_EQ(after.model, before.model) << change.pointer;
    EXPECT_EQ(after.settings, before.settings) << change.pointer;
  }
}

TEST(JobIdentityTest, ACheckpointOfAnEarlierVersionIsTakenIfItsSettingsAreTheSame) {
  const JobIdentity own = JobWith("", {});
  // Without defaults, and with fields that do not count in this version.
  const char stored[] = R"({
    "model": {"name": "ctrdnn", "parameters": {"embeddingDim": 8, "embeddingRows": 1024, "hidden": [64, 32]}},
    "data": {"train": {"uri": "file:///data/a.csv", "format": "csv"}, "validation": {"fraction": 0.1, "seed": 1},
             "schema": {"label": {"column": 3}, "numeric": [0, 1], "categorical": [2]}},
    "training": {"optimizer": {"learningRate": 0.05}, "sync": {"mode": "Full"}}})";
  CheckpointManifest manifest;
  manifest.model_fingerprint = "0123456789abcdef";
  manifest.settings = stored;
  EXPECT_TRUE(IsOfModel(manifest, own.model, own.settings));
  const JobIdentity other = JobWith("/training/batchSize", 256);
  EXPECT_FALSE(IsOfModel(manifest, other.model, other.settings));
  EXPECT_THAT(WhyOtherSettings(manifest.settings, other.settings),
              HasSubstr("settings: spec.training.batchSize is 512 in the checkpoint and 256 in this job. Only"));
  for (const char* none : {"", "{", "[]", "null"}) {
    manifest.settings = none;
    EXPECT_FALSE(IsOfModel(manifest, own.model, own.settings)) << none;
    EXPECT_FALSE(IsOfModel(manifest, own.model, "")) << none;
  }
}

TEST(JobIdentityTest, ACheckpointThatDoesNotTellIsRefusedWithASentenceToo) {
  const std::string own = JobWith("", {}).settings;
  for (const std::string& stored : {std::string(), std::string("{"), std::string("[]"), own}) {
    EXPECT_THAT(WhyOtherSettings(stored, own), HasSubstr("it does not say which"));
  }
}

}  // namespace
}  // namespace medley::worker
