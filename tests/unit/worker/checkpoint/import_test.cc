#include "worker/checkpoint/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/file.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "worker/checkpoint/reader.h"
#include "worker/checkpoint/store.h"
#include "worker/checkpoint/writer.h"

namespace medley::worker {
namespace {

namespace fs = std::filesystem;
using base::IsOk;
using base::StatusIs;
using testing::HasSubstr;

class ImportTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = *base::MakeTempDir("medley-import");
    old_ = root_ / "first";
    own_ = root_ / "second";
    fs::create_directories(old_);
    fs::create_directories(own_);
  }
  void TearDown() override { base::RemoveTempDir(root_); }

  // A checkpoint of the job "first" with one file. Its ledger has 1000 rows, batches of 10, two epochs.
  CheckpointManifest Write(int64_t step, const std::string& fingerprint = "print", const std::string& settings = "") {
    CheckpointManifest manifest{.job_uid = "first",
                                .model_fingerprint = fingerprint,
                                .generation = 3,
                                .step = step,
                                .rows = 1000,
                                .data_epochs = 2,
                                .batch_size = 10,
                                .folder = CheckpointFolder({3, step, 0}),
                                .files = {},
                                .settings = settings};
    auto writer = *CheckpointWriter::Create(Volume(old_), manifest.folder, {{"first", fingerprint}, 3, step});
    const std::vector<float> weights(50, static_cast<float>(step));
    EXPECT_THAT(writer->AddDense(1, "weight", weights, {}), IsOk());
    manifest.files.push_back(*writer->Finish());
    EXPECT_THAT(CheckpointStore(Volume(old_), "first").Complete(manifest), IsOk());
    return manifest;
  }
  absl::StatusOr<CheckpointManifest> Import(const fs::path& from, int epochs = 2) {
    return ImportCheckpoint(Volume(own_), from, {"second", "print", epochs, R"({"training": {"batchSize": 256}})"});
  }

  fs::path root_;
  fs::path old_;  // folder of the job that wrote the checkpoint
  fs::path own_;  // folder of the job that continues from it
};

TEST_F(ImportTest, TheNewestOfAJobBecomesTheOldestOfThisOne) {
  Write(100);
  Write(110);
  for (const fs::path& from : {old_, old_ / ""}) {
    const auto manifest = Import(from, 5);
    ASSERT_THAT(manifest, IsOk());
    EXPECT_EQ(manifest->folder, "step-00000110");  // without a generation: older than every other one
    EXPECT_EQ(manifest->data_epochs, 5);
    ASSERT_THAT(CheckpointStore(Volume(own_), "second").Complete(*manifest), IsOk());
  }
  const auto found = FindCheckpoint(Volume(own_), "second", "print");
  ASSERT_TRUE(found.ok() && found->manifest);
  EXPECT_EQ(found->manifest->step, 110);
  float weight = 0;
  CheckpointHandlers handlers;
  handlers.dense = [&](int32_t, std::string_view, std::span<const float> weights, std::span<const float>) {
    weight = weights[49];
    return absl::OkStatus();
  };
  ASSERT_THAT(ReadCheckpoint(Volume(own_), *found->manifest, std::move(handlers)), IsOk());
  EXPECT_EQ(weight, 110);
}

TEST_F(ImportTest, ANamedCheckpointIsTakenAlthoughANewerExists) {
  const CheckpointManifest chosen = Write(100);
  Write(110);
  const auto manifest = Import(old_ / chosen.folder);
  ASSERT_THAT(manifest, IsOk());
  EXPECT_EQ(manifest->step, 100);
}

TEST_F(ImportTest, AnotherModelIsRefusedWithASentence) {
  const CheckpointManifest other = Write(100, "other", R"({"training": {"batchSize": 512}})");
  for (const fs::path& from : {old_, old_ / other.folder}) {
    EXPECT_THAT(Import(from),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr("spec.training.batchSize is 512 in the checkpoint and 256 in this job")));
  }
}

TEST_F(ImportTest, AnEarlierVersionDoesNotSayWhatDiffers) {
  const CheckpointManifest other = Write(100, "other");
  for (const fs::path& from : {old_, old_ / other.folder}) {
    EXPECT_THAT(Import(from), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("it does not say which")));
  }
}

TEST_F(ImportTest, WhatDoesNotExistIsDamagedOrIsTrainedToTheEndIsRefused) {
  const auto refused = [](const std::string& why) {
    return StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(why));
  };
  EXPECT_THAT(Import(root_ / "nowhere"), refused("the folder does not exist"));
  EXPECT_THAT(Import(old_), refused("the folder has no checkpoint"));
  EXPECT_THAT(Import(old_ / "step-00000001"), refused("no complete checkpoint exists there"));
  const CheckpointManifest last = Write(200);
  EXPECT_THAT(Import(old_), refused("it has trained 2 epochs, this job trains 2"));
  EXPECT_THAT(Import(old_, 3), IsOk());
  fs::resize_file(old_ / last.folder / last.files[0].name, 100);
  for (const fs::path& from : {old_, old_ / last.folder}) EXPECT_THAT(Import(from, 3), refused("length is 100 bytes"));
}

}  // namespace
}  // namespace medley::worker
