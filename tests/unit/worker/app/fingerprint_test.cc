#include "worker/app/fingerprint.h"

#include <gtest/gtest.h>

#include <functional>

namespace medley::worker {
namespace {

using model::JobSpec;

JobSpec Changed(const std::function<void(JobSpec&)>& change) {
  JobSpec spec;
  spec.data.train = {"file:///a.csv", "csv"};
  spec.data.schema.label_column = 1;
  change(spec);
  return spec;
}

const JobSpec kBase = Changed([](JobSpec&) {});

TEST(FingerprintTest, WhatChangesTheParametersChangesBothHashes) {
  for (const auto& change : std::vector<std::function<void(JobSpec&)>>{
           [](JobSpec& s) { s.model.hidden = {8}; },
           [](JobSpec& s) { s.data.train.uri = "file:///b.csv"; },
           [](JobSpec& s) { s.data.schema.label_column = 2; },
           [](JobSpec& s) { s.training.learning_rate = 0.5; },
           [](JobSpec& s) { s.training.batch_size = 64; },
           [](JobSpec& s) { s.training.optimizer = "sgd"; },
           [](JobSpec& s) { s.training.beta1 = 0.8; },
           [](JobSpec& s) { s.training.beta2 = 0.99; },
           [](JobSpec& s) { s.training.epsilon = 1e-7; },
           [](JobSpec& s) { s.training.row_decay = 0; },
           [](JobSpec& s) { s.model.dropout = 0.1; },
           [](JobSpec& s) { s.data.schema.label_log = true; },
           [](JobSpec& s) { s.data.schema.weight_column = 3; },
           [](JobSpec& s) { s.data.schema.names.weight = "w"; },
           [](JobSpec& s) { s.training.seed = 2; },
           [](JobSpec& s) { s.data.schema.task = model::Task::kRegression; },
           [](JobSpec& s) { s.data.schema.label_columns = {1}, s.data.schema.task = model::Task::kMultiLabel; },
           [](JobSpec& s) {
             s.data.schema.label_classes = {"a", "b"}, s.data.schema.task = model::Task::kMultiClass;
           },
           [](JobSpec& s) { s.training.class_weights = {.balanced = true}; },
           [](JobSpec& s) {
             s.training.class_weights = {.weights = {{"1", 5}}};
           },
           [](JobSpec& s) { s.training.schedule = {.kind = "constant", .warmup_steps = 9}; },
       }) {
    EXPECT_NE(ModelFingerprint(Changed(change)), ModelFingerprint(kBase));
    EXPECT_NE(JobDigest(Changed(change)), JobDigest(kBase));
  }
}

TEST(FingerprintTest, EpochsTestDataLabelsAndFineDifferencesAreOfTheJob) {
  for (const auto& change : std::vector<std::function<void(JobSpec&)>>{
           [](JobSpec& s) { s.training.epochs = 2; },
           [](JobSpec& s) { s.training.learning_rate += 1e-9; },  // of which the fingerprint has six digits
           [](JobSpec& s) {
             s.data.test = {"file:///t.csv", "csv"};
           },
           [](JobSpec& s) { s.data.train.format = "tsv"; },
           [](JobSpec& s) { s.data.schema.label_positive = "yes"; },
           [](JobSpec& s) { s.data.schema.header = true; },
           [](JobSpec& s) {
             s.training.early_stopping = {"auc", 3, 0};
           },
       }) {
    EXPECT_EQ(ModelFingerprint(Changed(change)), ModelFingerprint(kBase));
    EXPECT_NE(JobDigest(Changed(change)), JobDigest(kBase));
  }
}

TEST(FingerprintTest, TasksDiffer) {
  const auto hash = [](const std::function<void(JobSpec&)>& change) { return ModelFingerprint(Changed(change)); };
  const auto classes = [](std::vector<std::string> names) {
    return [names](JobSpec& s) { s.data.schema.label_classes = names, s.data.schema.task = model::Task::kMultiClass; };
  };
  EXPECT_NE(hash(classes({"a|b", "c"})), hash(classes({"a", "b|c"})));
  EXPECT_NE(hash(classes({})), hash(classes({"a", "b"})));
  const auto loss = [](std::string name) {
    return [name](JobSpec& s) { s.model.loss = name, s.data.schema.task = model::Task::kRegression; };
  };
  EXPECT_EQ(hash(loss("")), hash(loss("mse"))) << "the default";
  EXPECT_NE(hash(loss("mae")), hash(loss("mse")));
}

TEST(FingerprintTest, HowAJobIsRunChangesNothing) {
  const JobSpec other = Changed([](JobSpec& s) {
    s.training.micro_batches = 1;
    s.checkpoint = {5, 1, "/elsewhere"};
    s.data.max_bad_rows = 9;
    s.training.evaluation = {.every_epochs = 1};
  });
  EXPECT_EQ(JobDigest(other), JobDigest(kBase));
  EXPECT_EQ(ModelFingerprint(other), ModelFingerprint(kBase));
}

}  // namespace
}  // namespace medley::worker
