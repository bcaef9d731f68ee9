// A model that was exported from PyTorch, trained by real processes: the loss does not depend on the plan, a member may
// be killed, and the weights come back under the names of its own state_dict.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "common/base/file.h"
#include "common/base/testing/temp_dir.h"
#include "tests/integration/worker/train_job.h"
#include "worker/exported/archive.h"

namespace medley::worker::imported_test {
namespace {

constexpr int kOperations = 7;  // embedding, first, norm, blocks.0, blocks.1, head, loss

JobOptions Adult() {
  JobOptions options;
  options.train = ExampleData("adult.train.csv");
  options.test = ExampleData("adult.test.csv");
  options.archive =
      (ExampleData("").parent_path().parent_path().parent_path() / "tests/data/exported/adult.pt2").string();
  options.model_json = R"(, "cut": {"depth": 2})";
  options.operations = kOperations;
  options.tables = {};
  options.embedding_rows = 512;
  options.epochs = 4;
  options.batch_size = 512;
  options.optimizer = "sgd";
  options.learning_rate = 0.1;
  return options;
}

TEST(ImportedModelTest, TrainsTheSameUnderEveryPlan) {
  const JobShape one{.stages = {{.end = kOperations, .units = 1}}};
  const JobShape pipeline{.stages = {{.end = 3, .units = 2}, {.first = 3, .end = kOperations, .units = 2}}};
  const JobShape placed{.placements = {{.operations = {{0, 2}, {4, 5}}, .devices = {0}},
                                       {.operations = {{2, 4}, {5, kOperations}}, .devices = {0, 1}}},
                        .devices = {"pool-a", "pool-b"}};
  const Outcome alone = Train(Adult(), one);
  ASSERT_GE(alone.losses.size(), 200u);
  EXPECT_GT(alone.end.metrics().at("auc"), 0.87);
  EXPECT_THAT(alone.header,
              ::testing::AllOf(::testing::HasSubstr("blocks.1.0.weight"), ::testing::HasSubstr("norm.bias"),
                               ::testing::HasSubstr("embedding.weight")));
  for (const auto& [what, run] : {std::pair{"2 stages x 2 replicas", Train(Adult(), pipeline)},
                                  std::pair{"rescaled, a member killed", Train(Adult(), one, &pipeline, true)},
                                  std::pair{"placements", Train(Adult(), placed)}}) {
    const double worst = LargestDifference(alone, run);
    std::printf("%s: largest relative difference of the loss: %.2e\n", what, worst);
    EXPECT_LT(worst, 1e-4) << what;
  }
}

// The archive with one bit of a weight changed, and its checksum with it.
std::string WithAnotherWeight(const std::string& path) {
  const auto whole = std::make_shared<std::string>(base::ReadFile(path).value());
  const auto program = exported::ReadArchiveBytes(whole, path);
  EXPECT_TRUE(program.ok()) << program.status();
  const exported::StoredTensor& weight = program->stored.begin()->second;
  std::string changed = *whole;
  const auto at = static_cast<size_t>(reinterpret_cast<const char*>(weight.entry.data()) - whole->data());
  changed[at] = static_cast<char>(changed[at] ^ 1);
  const auto checksum =
      static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(changed.data() + at), weight.entry.size()));
  const auto bytes = [](uint32_t value) { return std::string(reinterpret_cast<const char*>(&value), sizeof value); };
  const std::string before = bytes(weight.checksum);
  int places = 0;  // the entry's own header, and the directory
  for (size_t found = changed.find(before); found != std::string::npos; found = changed.find(before, found + 1)) {
    changed.replace(found, before.size(), bytes(checksum));
    ++places;
  }
  EXPECT_EQ(places, 2);
  return changed;
}

// A trainer that reads another file than the job began with is refused. It is the only one, so the job ends.
TEST(ImportedModelTest, AChangedFileEndsTheJob) {
  const std::filesystem::path folder = base::MakeTempDir("medley-imported").value();
  JobOptions options = Adult();
  const std::string archive = options.archive, copy = (folder / "model.pt2").string();
  ASSERT_EQ(base::WriteFileAtomic(copy, base::ReadFile(archive).value()), absl::OkStatus());
  options.archive = copy;
  options.epochs = 1000;
  JobHarness job(options);
  job.StartCoordinator();
  job.Apply({.stages = {{.end = kOperations, .units = 1}}}, "start");
  job.WaitFor([](const job::v1::Observation& o) { return o.step() >= 20; }, base::seconds(120));
  ASSERT_EQ(base::WriteFileAtomic(copy, WithAnotherWeight(archive)), absl::OkStatus());
  job.Kill(job.Running().front());
  const job::v1::Observation end = job.WaitForEnd(base::seconds(120));
  EXPECT_EQ(end.phase(), job::v1::JOB_PHASE_FAILED);
  EXPECT_THAT(end.message(), ::testing::AllOf(::testing::HasSubstr("has changed since the job began"),
                                              ::testing::HasSubstr("and the model file://" + copy)));
  base::RemoveTempDir(folder);
}

// The same model as TorchScript, whose inputs are named. With some seeds the input of a ReLU comes so near to 0 that
// the order of a sum decides its side, in one plan or in another: with seed 4 at step 22. Not so with this one.
TEST(ImportedModelTest, TrainsTorchScript) {
  JobOptions options = Adult();
  const std::string script = ExampleData("adult.pt").string();
  options.spec_json = R"({"model": {"torchScript": {"uri": "file://)" + script + R"("}, "cut": {"depth": 2},
                                    "parameters": {"embeddingRows": 512}},
    "data": {"train": {"uri": "file://)" +
                      options.train + R"(", "format": "csv"},
             "test": {"uri": "file://)" +
                      options.test + R"(", "format": "csv"},
             "inputs": [{"name": "categories", "type": "category", "columns": [1, 3, 5, 6, 7, 8, 9, 13]},
                        {"name": "numbers", "type": "float32", "columns": [0, 2, 4, 10, 11, 12]}],
             "schema": {"label": {"column": 14, "positive": ">50K"}}},
    "training": {"epochs": 2, "batchSize": 512, "microBatches": 4, "clipNorm": 1, "seed": 3,
                 "optimizer": {"name": "sgd", "learningRate": 0.1, "momentum": 0.5}},
    "checkpoint": {"interval": "3600s", "keep": 3}})";
  const Outcome alone = Train(options, {.stages = {{.end = kOperations, .units = 1}}});
  const Outcome pipeline =
      Train(options, {.stages = {{.end = 3, .units = 2}, {.first = 3, .end = kOperations, .units = 2}}});
  EXPECT_GT(alone.end.metrics().at("auc"), 0.87);
  const double worst = LargestDifference(alone, pipeline);
  std::printf("TorchScript, 2 stages x 2 replicas: auc %.4f, largest relative difference of the loss: %.2e\n",
              alone.end.metrics().at("auc"), worst);
  EXPECT_LT(worst, 1e-4);
}

// A language model whose output layer is its embedding, and a label for each token. Stages have the holders of the
// shared weight apart and together; a member is killed, and a new plan restores copies from the one that others hold.
TEST(ImportedModelTest, TrainsTiedWeightsWithALabelForEachToken) {
  constexpr int kGptOperations = 6;  // tokens, blocks.0, blocks.1, norm, head, loss
  const std::filesystem::path folder = base::MakeTempDir("medley-tied").value();
  std::string tokens, labels;
  uint32_t state = 7;
  for (int i = 0; i < 1024 * 7; ++i) {
    state = state * 1664525U + 1013904223U;
    const auto token = static_cast<int32_t>((state >> 16) % 11), label = i % 5 == 0 ? -100 : (token * 3 + 1) % 11;
    tokens.append(reinterpret_cast<const char*>(&token), sizeof token);
    labels.append(reinterpret_cast<const char*>(&label), sizeof label);
  }
  ASSERT_EQ(base::WriteFileAtomic(folder / "tokens", tokens), absl::OkStatus());
  ASSERT_EQ(base::WriteFileAtomic(folder / "labels", labels), absl::OkStatus());
  JobOptions options = Adult();
  options.operations = kGptOperations;
  const std::string model =
      (ExampleData("").parent_path().parent_path().parent_path() / "tests/data/exported/tokens.pt2").string();
  const std::string source = R"({"format": "raw", "uri": "file://)" + (folder / "tokens").string() +
                             R"(", "labels": "file://)" + (folder / "labels").string() + R"("})";
  options.spec_json = R"({"model": {"exported": {"uri": "file://)" + model +
                      R"("}, "cut": {"depth": 2}, "task": "multiClass"},
    "data": {"train": )" +
                      source + R"(, "test": )" + source + R"(,
             "inputs": [{"name": "ids", "type": "int64", "shape": [7], "storage": "int32"}],
             "schema": {"label": {"count": 7, "storage": "int32",
                              "classes": ["0","1","2","3","4","5","6","7","8","9","10"]}}},
    "training": {"epochs": 12, "batchSize": 64, "microBatches": 4, "clipNorm": 1, "seed": 3,
                 "optimizer": {"name": "adam", "learningRate": 0.01}},
    "checkpoint": {"interval": "3600s", "keep": 3}})";
  const JobShape one{.stages = {{.end = kGptOperations, .units = 1}}};
  const JobShape apart{.stages = {{.end = 1, .units = 2},
                                  {.first = 1, .end = 3, .units = 1},
                                  {.first = 3, .end = kGptOperations, .units = 2}}};
  const Outcome alone = Train(options, one);
  ASSERT_EQ(alone.losses.size(), 192u);
  EXPECT_GT(alone.end.metrics().at("accuracy"), 0.6) << "the next token follows from the token";
  EXPECT_EQ(alone.end.metrics().at("test_samples"), 1024 * 7 - (1024 * 7 + 4) / 5) << "tokens with a label";
  for (const auto& [what, run] : {std::pair{"3 stages of 2, 1 and 2 replicas", Train(options, apart)},
                                  std::pair{"rescaled, a member killed", Train(options, one, &apart, true)}}) {
    const double worst = LargestDifference(alone, run);
    std::printf("%s: largest relative difference of the loss: %.2e\n", what, worst);
    EXPECT_LT(worst, 1e-4) << what;
  }
  EXPECT_EQ(alone.header.find("head.weight"), std::string::npos) << "the export has one copy";
  EXPECT_NE(alone.header.find("tokens.weight"), std::string::npos);
  base::RemoveTempDir(folder);
}

}  // namespace
}  // namespace medley::worker::imported_test
