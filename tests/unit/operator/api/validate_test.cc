// Every sentence of the CRDs, broken by a manifest: what CEL refuses on a real server, Validate
// refuses here.
#include "operator/api/validate.h"

#include <gmock/gmock.h>
#include <yaml-cpp/yaml.h>

#include <cstdlib>
#include <set>
#include <string>

namespace medley::ops {
namespace {

using kube::Json;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

// Messages of all x-kubernetes-validations below `node`.
void Collect(const YAML::Node& node, std::set<std::string>& messages) {
  if (node.IsMap()) {
    for (const auto& entry : node) {
      if (entry.first.as<std::string>() == "x-kubernetes-validations") {
        for (const auto& rule : entry.second) messages.insert(rule["message"].as<std::string>());
      } else {
        Collect(entry.second, messages);
      }
    }
  } else if (node.IsSequence()) {
    for (const auto& item : node) Collect(item, messages);
  }
}

std::set<std::string> Sentences(const std::string& file) {
  const char* source = std::getenv("MEDLEY_SOURCE_DIR");
  EXPECT_NE(source, nullptr);
  std::set<std::string> messages;
  Collect(YAML::LoadFile(std::string(source) + "/deploy/crds/" + file), messages);
  return messages;
}

Json GoodJob() {
  return Json::parse(R"({"apiVersion": "medley.dev/v1alpha1", "kind": "TrainingJob",
    "metadata": {"name": "adult", "namespace": "ml"},
    "spec": {"model": {"name": "ctrdnn"},
             "data": {"train": {"uri": "file:///data/train.csv", "format": "csv"},
                      "schema": {"label": {"column": 14}, "categorical": [1, 3], "numeric": [0, 2]}}}})");
}
Json GoodPool() {
  return Json::parse(
      R"({"apiVersion": "medley.dev/v1alpha1", "kind": "ResourcePool", "metadata": {"name": "cpu"},
    "spec": {"class": "CPU", "unit": {"resources": {"cpu": "1"}}, "limit": 4, "price": {"usdPerUnitHour": "0.04"}}})");
}

constexpr char kNotShared[] =
    "spec.checkpoint.volume must be one that every pod of the job can write and the next pod finds "
    "again: not emptyDir, ephemeral, gitRepo, configMap, secret, downwardAPI, projected or image";

struct Broken {
  const char* pointer;
  const char* value;  // JSON; "" removes
  const char* sentence;
};

Json With(Json object, const Broken& change) {
  const Json::json_pointer at{std::string(change.pointer)};
  if (*change.value == '\0') {
    object.at(at.parent_pointer()).erase(at.back());
  } else {
    object[at] = Json::parse(change.value);
  }
  return object;
}

const std::vector<Broken>& BrokenJobs() {
  static const std::vector<Broken> table = {
      {"/metadata/name", R"("a2345678901234567890123456789012345678901")",
       "metadata.name must be at most 40 characters, because pod names are made from it"},
      {"/metadata/name", R"("1a.b")",
       "metadata.name must begin with a letter and hold only lower-case letters, digits and "
       "hyphens, because a Service "
       "is named after it"},
      {"/spec/model/layers", R"([{"name": "l", "kind": "Loss"}])",
       "spec.model must have exactly one of name and layers"},
      {"/spec/model/name", "", "spec.model must have exactly one of name and layers"},
      {"/spec/model",
       R"({"layers": [{"name": "l", "kind": "Loss"}], "parameters": {"hidden": [4]}})",
       "spec.model.parameters go with spec.model.name, not with layers"},
      {"/spec/model", R"({"layers": [{"name": "fc", "kind": "FullyConnected"}]})",
       "a layer of spec.model.layers needs out, its number of outputs, unless its kind is Loss"},
      {"/spec/data/train/uri", R"("s3://bucket/x.csv")",
       "spec.data.train.uri must begin with file:///"},
      {"/spec/data/test", R"({"uri": "x.csv", "format": "csv"})",
       "spec.data.test.uri must begin with file:///"},
      {"/spec/data/schema", R"({"label": {"column": 0}})",
       "spec.data.schema must name categorical or numeric columns"},
      {"/spec/data/schema/label/column", "1",
       "spec.data.schema.categorical must not hold the label's column"},
      {"/spec/data/schema/label/column", "2",
       "spec.data.schema.numeric must not hold the label's column"},
      {"/spec/data/schema/numeric", "[3]",
       "a column of spec.data.schema must not be both categorical and numeric"},
      {"/spec/data/schema", R"({"label": {"column": 0}, "categorical": [1], "numericBuckets": 8})",
       "spec.data.schema.numericBuckets needs numeric columns"},
      {"/spec/data/volume", R"({"emptyDir": {}, "mountPath": "data"})",
       "spec.data.volume.mountPath must be absolute"},
      {"/spec/training", R"({"batchSize": 2, "microBatches": 4})",
       "spec.training.microBatches must not exceed spec.training.batchSize"},
      {"/spec/training", R"({"optimizer": {"learningRate": 0}})",
       "spec.training.optimizer.learningRate must be greater than 0"},
      {"/spec/objective", R"({"minThroughput": -1})",
       "spec.objective.minThroughput must not be negative"},
      {"/spec/objective", R"({"deadline": "0s"})",
       "spec.objective.deadline must be a duration greater than 0, as in 2h or 90m"},
      {"/spec/objective", R"({"budgetUsd": "0"})",
       "spec.objective.budgetUsd must be greater than 0"},
      {"/spec/objective", R"({"maxUsdPerHour": "0.0"})",
       "spec.objective.maxUsdPerHour must be greater than 0"},
      {"/spec/planner", R"({"timeBudget": "11m"})",
       "spec.planner.timeBudget must be greater than 0 and at most 10m"},
      {"/spec/resources", R"({"pools": ["a", "b"], "serverPool": "c"})",
       "spec.resources.serverPool must be one of spec.resources.pools"},
      {"/spec/resources", R"({"pools": ["a", "a"]})",
       "spec.resources.pools must not name a pool twice"},
      {"/spec/elasticity", R"({"minUnits": 5, "maxUnits": 4})",
       "spec.elasticity.minUnits must not exceed spec.elasticity.maxUnits"},
      {"/spec/elasticity", R"({"replan": {"minSaving": "101%"}})",
       "spec.elasticity.replan.minSaving must be at most 100%"},
      {"/spec/runPolicy", R"({"managedBy": "me"})",
       "spec.runPolicy.managedBy must be a domain-prefixed name, as in medley.dev/operator"},
      {"/spec/checkpoint", R"({"interval": "10ms"})",
       "spec.checkpoint.interval must be at least 1s"},
      {"/spec/checkpoint",
       R"({"volume": {"persistentVolumeClaim": {"claimName": "c"}, "mountPath": "ck"}})",
       "spec.checkpoint.volume.mountPath must be absolute"},
      {"/spec/checkpoint", R"({"volume": {"emptyDir": {}, "mountPath": "/ck"}})", kNotShared},
      {"/spec/template", R"({"spec": {"restartPolicy": "Always"}})",
       "spec.template.spec.restartPolicy must be Never or absent: the operator replaces pods"},
  };
  return table;
}

const std::vector<Broken>& BrokenUpdates() {
  static const std::vector<Broken> table = {
      {"/spec/model/name", R"("mlp")",
       "spec.model is immutable; make a new TrainingJob for another model"},
      {"/spec/data/train/uri", R"("file:///data/other.csv")",
       "spec.data is immutable; make a new TrainingJob for other data"},
      {"/spec/training", R"({"seed": 2})",
       "spec.training is immutable; make a new TrainingJob to train in another way"},
      {"/spec/runPolicy", R"({"managedBy": "other/x"})", "spec.runPolicy.managedBy is immutable"},
  };
  return table;
}

const std::vector<Broken>& BrokenPools() {
  static const std::vector<Broken> table = {
      {"/metadata/name", R"("a2345678901234567890123456789012345678901")",
       "metadata.name must be at most 40 characters, because pod names are made from it"},
      {"/metadata/name", R"("v100.spot")",
       "metadata.name must not contain a dot, because pod names are made from it"},
      {"/spec/unit/env", R"([{"name": "MEDLEY_TOKEN", "value": "x"}])",
       "spec.unit.env must not set a variable that begins with MEDLEY_"},
      {"/spec/price", "{}", "spec.price must have exactly one of usdPerUnitHour and offering"},
      {"/spec/price", R"({"usdPerUnitHour": "1", "offering": {"provider": "aws"}})",
       "spec.price must have exactly one of usdPerUnitHour and offering"},
      {"/spec/price", R"({"usdPerUnitHour": "0"})",
       "spec.price.usdPerUnitHour must be greater than 0"},
      {"/spec/price", R"({"offering": {"provider": "aws", "unitsPerInstance": 0}})",
       "spec.price.offering.unitsPerInstance must be greater than 0"},
  };
  return table;
}

TEST(ValidateTest, GoodManifestsBreakNoRule) {
  EXPECT_THAT(ValidateTrainingJob(kube::Object(GoodJob())), IsEmpty());
  EXPECT_THAT(ValidateResourcePool(kube::Object(GoodPool())), IsEmpty());
  EXPECT_THAT(ValidateTrainingJobUpdate(GoodJob()["spec"], GoodJob()["spec"]), IsEmpty());
}

TEST(ValidateTest, EachBrokenJobGetsItsSentence) {
  for (const Broken& row : BrokenJobs()) {
    EXPECT_THAT(ValidateTrainingJob(kube::Object(With(GoodJob(), row))), Contains(row.sentence))
        << row.value;
  }
}

TEST(ValidateTest, CheckpointsNeedAVolumeThatPodsShare) {
  const auto broken = [](const Json& volume) {
    Json job = GoodJob();
    job["spec"]["checkpoint"]["volume"] = volume;
    return ValidateTrainingJob(kube::Object(job));
  };
  for (const char* source : {"emptyDir", "ephemeral", "gitRepo", "configMap", "secret",
                             "downwardAPI", "projected", "image"}) {
    EXPECT_THAT(broken({{source, Json::object()}, {"mountPath", "/ck"}}), ElementsAre(kNotShared))
        << source;
  }
  for (const char* source : {"persistentVolumeClaim", "hostPath", "nfs", "csi", "cephfs"}) {
    EXPECT_THAT(broken({{source, Json::object()}, {"mountPath", "/ck"}}), IsEmpty()) << source;
  }
}

TEST(ValidateTest, EachBrokenUpdateGetsItsSentence) {
  for (const Broken& row : BrokenUpdates()) {
    const Json after = With(GoodJob(), row);
    EXPECT_THAT(ValidateTrainingJobUpdate(GoodJob()["spec"], after["spec"]), Contains(row.sentence))
        << row.value;
  }
}

TEST(ValidateTest, DefaultsThatAServerAddedAreNoChange) {
  Json after = GoodJob();
  after["spec"]["training"] = {{"seed", 1}};
  after["spec"]["model"]["parameters"] = {{"embeddingDim", 16}};
  after["spec"]["data"]["schema"]["numericBuckets"] = 0;
  EXPECT_THAT(ValidateTrainingJobUpdate(GoodJob()["spec"], after["spec"]), IsEmpty());
}

TEST(ValidateTest, EachBrokenPoolGetsItsSentence) {
  for (const Broken& row : BrokenPools()) {
    EXPECT_THAT(ValidateResourcePool(kube::Object(With(GoodPool(), row))), Contains(row.sentence))
        << row.value;
  }
}

TEST(ValidateTest, NoSentenceOfTheCrdsIsMissingHere) {
  std::set<std::string> tested;
  for (const Broken& row : BrokenJobs()) tested.insert(row.sentence);
  for (const Broken& row : BrokenUpdates()) tested.insert(row.sentence);
  EXPECT_EQ(Sentences("trainingjobs.yaml"), tested);
  tested.clear();
  for (const Broken& row : BrokenPools()) tested.insert(row.sentence);
  EXPECT_EQ(Sentences("resourcepools.yaml"), tested);
}

TEST(ValidateTest, ValuesOfAWrongTypeDoNotCrash) {
  for (const char* junk :
       {"null", "[]", "7", R"("x")", R"({"model": 7, "data": [], "runPolicy": "x"})"}) {
    Json job = GoodJob();
    job["spec"] = Json::parse(junk);
    ValidateTrainingJob(kube::Object(job));
    Json pool = GoodPool();
    pool["spec"] = Json::parse(junk);
    ValidateResourcePool(kube::Object(pool));
  }
}

}  // namespace
}  // namespace medley::ops
