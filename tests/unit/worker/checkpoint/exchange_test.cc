// Files of one checkpoint that are moved into another are refused by name, and the checkpoint before is taken.
#include <gmock/gmock.h>

#include <filesystem>
#include <vector>

#include "common/base/file.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "worker/checkpoint/header.h"
#include "worker/checkpoint/import.h"
#include "worker/checkpoint/reader.h"
#include "worker/checkpoint/store.h"
#include "worker/checkpoint/writer.h"

namespace medley::worker {
namespace {

namespace fs = std::filesystem;
using base::IsOk;
using base::StatusIs;
using testing::HasSubstr;

class ExchangeTest : public testing::Test {
 protected:
  void SetUp() override { root_ = *base::MakeTempDir("medley-exchange"); }
  void TearDown() override { base::RemoveTempDir(root_); }

  // Files of equal length: two of trainers and two of parameter servers.
  CheckpointManifest Write(const std::string& uid, int64_t step, int64_t generation,
                           const std::string& fingerprint = "print") {
    const Volume volume(root_ / uid);
    CheckpointManifest manifest{.job_uid = uid,
                                .model_fingerprint = fingerprint,
                                .generation = generation,
                                .step = step,
                                .rows = 1000,
                                .data_epochs = 2,
                                .batch_size = 10,
                                .folder = CheckpointFolder({generation, step, 0}),
                                .files = {},
                                .origin_uid = "",
                                .origin_generation = 0};
    for (const auto kind : {CheckpointFileKind::kDense, CheckpointFileKind::kRows}) {
      for (int32_t shard = 0; shard < 2; ++shard) {
        auto writer =
            *CheckpointWriter::Create(volume, manifest.folder, {{uid, fingerprint}, generation, step, kind, shard});
        const std::vector<float> values(8, 0.5F);
        EXPECT_THAT(writer->AddRows(0, 4, std::vector<uint64_t>{1, 2}, values), IsOk());
        manifest.files.push_back(*writer->Finish());
      }
    }
    EXPECT_THAT(CheckpointStore(volume, uid).Complete(manifest), IsOk());
    return manifest;
  }
  fs::path Path(const CheckpointManifest& of, size_t file) const {
    return root_ / of.job_uid / of.folder / of.files[file].name;
  }
  absl::Status ReadAll(const CheckpointManifest& manifest) const {
    CheckpointHandlers handlers;
    handlers.rows = [](auto&&...) { return absl::OkStatus(); };
    return ReadCheckpoint(root_ / manifest.job_uid, manifest, std::move(handlers));
  }

  fs::path root_;
};

// The contents are equal, so only the headers tell the files apart.
TEST_F(ExchangeTest, AnyFileInThePlaceOfAnotherIsRefusedByNameAndTheOneBeforeIsTaken) {
  const CheckpointManifest before = Write("job-a", 7, 3);
  const CheckpointManifest newest = Write("job-a", 9, 3);
  const std::vector<CheckpointManifest> others = {newest, before, Write("job-a", 8, 2), Write("job-b", 9, 3),
                                                  Write("job-b", 7, 4)};
  int exchanges = 0;
  for (const CheckpointManifest& other : others) {
    for (size_t to = 0; to < newest.files.size(); ++to) {
      const std::string good = *base::ReadFile(Path(newest, to));
      for (size_t from = 0; from < other.files.size(); ++from) {
        if (Path(newest, to) == Path(other, from)) continue;
        SCOPED_TRACE(Path(other, from).string() + " as " + Path(newest, to).string());
        ASSERT_THAT(base::WriteFileAtomic(Path(newest, to), *base::ReadFile(Path(other, from))), IsOk());
        const auto found = FindCheckpoint(root_ / "job-a", "job-a", "print");
        ASSERT_THAT(found, IsOk());
        ASSERT_TRUE(found->manifest);
        EXPECT_EQ(*found->manifest, before);
        ASSERT_EQ(found->rejected.size(), 1u);
        EXPECT_THAT(found->rejected[0].reason, HasSubstr(newest.files[to].name + ": the file"));
        EXPECT_THAT(ReadAll(newest), StatusIs(absl::StatusCode::kDataLoss, HasSubstr(newest.files[to].name)));
        ++exchanges;
      }
      ASSERT_THAT(base::WriteFileAtomic(Path(newest, to), good), IsOk());
    }
  }
  EXPECT_EQ(exchanges, 5 * 16 - 4);
  EXPECT_EQ(*FindCheckpoint(root_ / "job-a", "job-a", "print")->manifest, newest);
}

TEST_F(ExchangeTest, TheReasonSaysWhereTheFileComesFrom) {
  const CheckpointManifest newest = Write("job-a", 9, 3);
  const auto reason = [&](const CheckpointManifest& other, size_t from) {
    EXPECT_THAT(base::WriteFileAtomic(Path(newest, 0), *base::ReadFile(Path(other, from))), IsOk());
    return std::string(VerifyCheckpoint(root_ / "job-a", newest).message());
  };
  EXPECT_EQ(reason(Write("job-b", 9, 3), 0),
            "dense-e3-t0.mck: the file was written by the job with uid job-b, the manifest names job-a");
  EXPECT_EQ(reason(Write("job-a", 8, 3), 0), "dense-e3-t0.mck: the file is of step 8, the manifest says 9");
  EXPECT_EQ(reason(Write("job-a", 9, 4), 0),
            "dense-e3-t0.mck: the file was written by generation 4, the manifest says 3");
  EXPECT_EQ(reason(Write("job-a", 10, 3, "other"), 0),
            "dense-e3-t0.mck: the model fingerprint of the file is other, the manifest says print");
  EXPECT_EQ(reason(newest, 1), "dense-e3-t0.mck: the file was written under the name dense-e3-t1.mck");
  EXPECT_EQ(reason(newest, 3), "dense-e3-t0.mck: the file was written under the name rows-e3-1.mck");
}

// New pods of a job have the new worker image after an update, while its coordinator still has the old one.
TEST_F(ExchangeTest, AFileOfAMemberOfAnotherVersionIsTaken) {
  CheckpointManifest mixed = Write("job-a", 9, 3, "2-print");
  mixed.model_fingerprint = "print";
  EXPECT_THAT(VerifyCheckpoint(root_ / "job-a", mixed), IsOk());
  mixed.model_fingerprint = "2-other";
  EXPECT_THAT(VerifyCheckpoint(root_ / "job-a", mixed),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("fingerprint")));
}

TEST_F(ExchangeTest, FilesOfTheSameNameAndStepDifferByTheirContent) {
  const CheckpointManifest manifest = Write("job-a", 9, 3);
  auto writer = *CheckpointWriter::Create(root_ / "job-a", manifest.folder, {{"job-a", "print"}, 3, 9});
  ASSERT_THAT(writer->AddRows(0, 4, std::vector<uint64_t>{1, 2}, std::vector<float>(8, 0.75F)), IsOk());
  ASSERT_THAT(writer->Finish(), IsOk());
  EXPECT_THAT(VerifyCheckpoint(root_ / "job-a", manifest),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("dense-e3-t0.mck: its digest is")));
}

TEST_F(ExchangeTest, AManifestInThePlaceOfAnotherIsRefused) {
  Write("job-a", 7, 3);
  Write("job-a", 9, 3);
  for (const CheckpointManifest& other :
       {Write("job-a", 7, 2), Write("job-b", 9, 3), Write("job-b", 7, 3), Write("job-a", 9, 2)}) {
    const fs::path manifest = root_ / "job-a" / CheckpointFolder({3, 9, 0}) / "manifest.json";
    fs::copy_file(root_ / other.job_uid / other.folder / "manifest.json", manifest,
                  fs::copy_options::overwrite_existing);
    const auto found = FindCheckpoint(root_ / "job-a", "job-a", "print");
    ASSERT_THAT(found, IsOk());
    ASSERT_TRUE(found->manifest);
    EXPECT_EQ(found->manifest->step, 7);
    EXPECT_EQ(found->manifest->generation, 3);
  }
}

TEST_F(ExchangeTest, AnImportedCheckpointBelongsToItsNewJobButAcceptsNoOtherFiles) {
  const CheckpointManifest first = Write("job-a", 9, 3);
  const CheckpointManifest other = Write("job-c", 9, 3);
  fs::create_directories(root_ / "job-b");
  const auto imported = ImportCheckpoint(root_ / "job-b", root_ / "job-a", {"job-b", "print", 2});
  ASSERT_THAT(imported, IsOk());
  ASSERT_THAT(CheckpointStore(root_ / "job-b", "job-b").Complete(*imported), IsOk());
  EXPECT_EQ(*FindCheckpoint(root_ / "job-b", "job-b", "print")->manifest, *imported);
  EXPECT_THAT(ReadAll(*imported), IsOk());
  // The copy of a copy still names the job that wrote the files.
  fs::create_directories(root_ / "job-d");
  const auto again = ImportCheckpoint(root_ / "job-d", root_ / "job-b", {"job-d", "print", 2});
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(again->origin_uid, "job-a");
  EXPECT_EQ(again->origin_generation, 3);
  EXPECT_THAT(CheckpointStore(root_ / "job-d", "job-d").Complete(*again), IsOk());

  ASSERT_THAT(base::WriteFileAtomic(Path(*imported, 2), *base::ReadFile(Path(other, 2))), IsOk());
  EXPECT_THAT(VerifyCheckpoint(root_ / "job-b", *imported),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("uid job-c, the manifest names job-a")));
}

TEST_F(ExchangeTest, AFileOfAnotherVersionIsRefusedWithASentence) {
  const CheckpointManifest manifest = Write("job-a", 9, 3);
  std::string bytes = *base::ReadFile(Path(manifest, 0));
  bytes[8] = 1;
  ASSERT_THAT(base::WriteFileAtomic(Path(manifest, 0), bytes), IsOk());
  EXPECT_THAT(VerifyCheckpoint(root_ / "job-a", manifest),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("version 1 is of another version of Medley")));
  EXPECT_THAT(ParseManifest("{\"format\": 1}"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("format 1 is of another version of Medley")));
}

TEST_F(ExchangeTest, HeadersReadBackAsTheyWereWritten) {
  const CheckpointFileHeader header{{"uid", "print"}, 12, 345, CheckpointFileKind::kRows, 6};
  const std::string bytes = *EncodeHeader(header);
  EXPECT_EQ(*HeaderLength(bytes), bytes.size());
  EXPECT_EQ(*DecodeHeader(bytes), header);
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string bad = bytes;
    bad[i] ^= 1;
    EXPECT_THAT(DecodeHeader(bad), StatusIs(absl::StatusCode::kDataLoss)) << i;
  }
  EXPECT_THAT(EncodeHeader({{std::string(5000, 'u'), ""}, 1, 1}), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace medley::worker
