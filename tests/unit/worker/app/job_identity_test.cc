#include "worker/app/job_identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "common/base/file.h"
#include "common/base/testing/status_matchers.h"
#include "common/document/parse.h"
#include "common/model/fingerprint.h"
#include "common/model/job_spec.h"
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

// A field of the API's schema, and two values that it can have.
struct Field {
  std::string path;  // "spec.training.seed"
  json::json_pointer pointer;
  json one, other;
};

void AddFields(const json& schema, const std::string& path, const std::string& pointer, std::vector<Field>& fields) {
  if (schema.contains("properties")) {
    for (const auto& [name, child] : schema["properties"].items()) {
      AddFields(child, path + "." + name, pointer + "/" + name, fields);
    }
    return;
  }
  const std::string type = schema.value("type", "");
  const bool choice = schema.contains("x-kubernetes-int-or-string");
  Field field{path, json::json_pointer(pointer), {}, {}};
  if (schema.contains("enum")) {
    field.one = schema["enum"].front();
    field.other = schema["enum"].back();
  } else if (choice || type == "integer") {
    field.one = 5;
    field.other = 6;
  } else if (type == "number") {
    field.one = 0.25;
    field.other = 0.5;
  } else if (type == "boolean") {
    field.one = false;
    field.other = true;
  } else if (type == "string") {
    field.one = schema.value("pattern", "").find("file:") != std::string::npos ? "file:///a" : "1m";
    field.other = schema.value("pattern", "").find("file:") != std::string::npos ? "file:///b" : "2m";
    if (path.ends_with(".uri")) field.one = "file:///a", field.other = "file:///b";
    if (path.ends_with("Budget")) field.one = "1Gi", field.other = "2Gi";
  } else if (type == "object") {
    const bool numbers = schema["additionalProperties"].value("type", "") == "number";
    field.one = {{"1", numbers ? json(2) : json("file:///a")}};
    field.other = {{"1", numbers ? json(3) : json("file:///b")}};
  } else {
    std::vector<Field> items;
    AddFields(schema["items"], path, pointer, items);
    if (items.size() != 1) return;  // lists of objects: layers and inputs, in the test below
    const auto least = std::max(schema.value("minItems", size_t{1}), size_t{1});
    field.one = json(least, items.front().one);
    field.other = json(least, items.front().other);
  }
  fields.push_back(std::move(field));
}

// Walks the API's schema, so that a new field is either named by a refusal or known to be of no matter.
TEST(JobIdentityTest, EveryFieldOfTheSchemaThatMattersIsNamed) {
  const auto text =
      base::ReadFile(std::string(std::getenv("MEDLEY_SOURCE_DIR")) + "/charts/medley/crds/trainingjobs.yaml");
  ASSERT_THAT(text, base::IsOk());
  const auto crd = document::ParseYaml(*text);
  ASSERT_THAT(crd, base::IsOk());
  const json& spec = crd->at("spec")["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
  std::vector<Field> fields;
  for (const char* part : {"model", "data", "training", "export"}) {
    AddFields(spec[part], std::string("spec.") + part, std::string("/") + part, fields);
  }
  ASSERT_GT(fields.size(), 70U);
  // Some fields count only beside others.
  std::vector<json> jobs(6, json::parse(kSpec));
  jobs[1]["training"]["optimizer"]["schedule"] = {{"kind", "step"}, {"everySteps", 9}, {"steps", 9}};
  jobs[1]["training"]["optimizer"]["momentum"] = 0.1;
  jobs[2]["training"]["earlyStopping"] = {{"metric", "auc"}, {"patience", 2}};
  jobs[2]["data"]["validation"] = {{"uri", "file:///v.csv"}, {"format", "csv"}};
  jobs[3]["model"] = {{"exported", {{"uri", "file:///m.pt2"}}}, {"task", "regression"}};
  jobs[3]["data"]["inputs"] = {{{"name", "x"}, {"type", "float32"}}};
  jobs[3]["data"]["train"] = {{"format", "npy"}, {"uri", "file:///x.npy"}, {"labels", "file:///y.npy"}};
  jobs[3]["data"]["schema"] = {{"label", {{"count", 1}}}};
  jobs[3]["data"].erase("validation");
  jobs[3]["data"]["test"] = jobs[3]["data"]["train"];
  jobs[4] = jobs[3];
  jobs[4]["model"] = {{"torchScript", {{"uri", "file:///m.pt"}}}, {"task", "multiClass"}};
  jobs[4]["data"]["validation"] = jobs[3]["data"]["train"];
  jobs[5]["model"]["task"] = "multiClass";
  std::set<std::string> matter, checked, listed;  // `listed`: a refusal would name it
  for (const json& job : jobs) {
    for (const Field& field : fields) {
      std::string digests[2], fingerprints[2], settings[2], trained[2];
      bool parsed = true;
      for (int i = 0; i < 2; ++i) {
        json changed = job;
        try {
          changed[field.pointer] = i == 0 ? field.one : field.other;
        } catch (const json::exception&) {
          parsed = false;  // it has no place in this job
          break;
        }
        const auto read = model::ParseJobSpec(changed.dump());
        parsed = parsed && read.ok();
        if (!read.ok()) break;
        const JobIdentity identity = IdentityOf(changed.dump());
        digests[i] = identity.digest;
        fingerprints[i] = identity.model;
        settings[i] = identity.job_settings;
        trained[i] = identity.settings;
      }
      if (!parsed) continue;
      checked.insert(field.path);
      if (settings[0] != settings[1]) listed.insert(field.path);
      if (digests[0] == digests[1]) continue;
      matter.insert(field.path);
      const std::string words = SettingsInWords(settings[0], settings[1], model::Purpose::kJob, "before", "now");
      EXPECT_THAT(words, testing::AllOf(HasSubstr(field.path), HasSubstr(" before and "), HasSubstr(" now")));
      if (fingerprints[0] == fingerprints[1]) continue;
      EXPECT_THAT(WhyOtherSettings(trained[0], trained[1]), HasSubstr(field.path));
    }
  }
  std::vector<std::string> others, not_checked;
  for (const Field& field : fields) {
    if (!checked.contains(field.path)) not_checked.push_back(field.path);
    if (!matter.contains(field.path)) others.push_back(field.path);
  }
  EXPECT_THAT(not_checked, testing::IsEmpty());
  // How the job is planned and run.
  EXPECT_THAT(others, testing::UnorderedElementsAre(
                          "spec.data.maxBadRows", "spec.data.volume.hostPath.path", "spec.data.volume.mountPath",
                          "spec.training.embeddings.diskBudget", "spec.training.embeddings.memoryBudget",
                          "spec.training.microBatches", "spec.training.sync.anomaly.detector",
                          "spec.training.sync.anomaly.threshold", "spec.training.sync.anomaly.window",
                          "spec.training.sync.fraction", "spec.training.sync.hierarchy", "spec.training.sync.mode",
                          "spec.training.sync.targetRatio", "spec.training.tensorBoard"));
  for (const std::string& field : others) EXPECT_FALSE(listed.contains(field)) << field;
}

}  // namespace
}  // namespace medley::worker
