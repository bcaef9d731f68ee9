#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <vector>

#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "tests/unit/worker/checkpoint/faulty_files.h"
#include "worker/checkpoint/reader.h"
#include "worker/checkpoint/store.h"
#include "worker/checkpoint/writer.h"

namespace medley::worker {
namespace {

namespace fs = std::filesystem;
using base::IsOk;
using base::StatusIs;
using testing::ElementsAre;
using testing::HasSubstr;

class CheckpointTest : public testing::Test {
 protected:
  void SetUp() override { root_ = *base::MakeTempDir("medley-checkpoint"); }
  void TearDown() override { base::RemoveTempDir(root_); }

  static std::string Folder(int64_t step, int64_t generation = 3) {
    return CheckpointFolder({.generation = generation, .step = step});
  }
  static std::string ManifestOf(int64_t step, int64_t generation = 3) {
    return Folder(step, generation) + "/manifest.json";
  }
  static CheckpointFileHeader Header(int64_t step, int64_t generation = 3,
                                     CheckpointFileKind kind = CheckpointFileKind::kDense, int32_t shard = 0) {
    return {{"uid", "print"}, generation, step, kind, shard};
  }
  std::vector<int64_t> Complete() const {
    std::vector<int64_t> steps;
    const auto folders = ListCheckpointFolders(root_);
    for (const CheckpointName& name : folders.value()) {
      if (fs::exists(root_ / CheckpointFolder(name) / "manifest.json")) steps.push_back(name.step);
    }
    return steps;
  }
  absl::Status Prune(int keep) { return CheckpointStore(root_, "uid").Prune(keep); }
  void Damage(const fs::path& file) {
    std::string bytes = *base::ReadFile(file);
    bytes[bytes.size() / 2] ^= 1;
    ASSERT_THAT(base::WriteFileAtomic(file, bytes), IsOk());
  }

  // Writes two dense operations in one file, and a table of 100 rows in two shards.
  CheckpointManifest Write(int64_t step, int64_t generation = 3) {
    CheckpointManifest manifest;
    manifest.job_uid = "uid";
    manifest.model_fingerprint = "print";
    manifest.generation = generation;
    manifest.step = step;
    manifest.rows = 1000;
    manifest.data_epochs = 2;
    manifest.batch_size = 10;
    manifest.folder = Folder(step, generation);
    auto dense =
        *CheckpointWriter::Create(root_, manifest.folder, Header(step, generation, CheckpointFileKind::kDense, 1));
    for (int32_t op : {1, 2}) {
      const std::vector<float> weights(50, static_cast<float>(op) + 0.5f);
      const std::vector<float> state(50, static_cast<float>(step));
      EXPECT_THAT(dense->AddDense(op, "weight", weights, state), IsOk());
      EXPECT_THAT(dense->AddDense(op, "bias", std::span(weights).first(5), {}), IsOk());
    }
    manifest.files.push_back(*dense->Finish());
    for (int shard = 0; shard < 2; ++shard) {
      auto rows =
          *CheckpointWriter::Create(root_, manifest.folder, Header(step, generation, CheckpointFileKind::kRows, shard));
      std::vector<uint64_t> keys;
      std::vector<float> values;
      for (uint64_t key = static_cast<uint64_t>(shard); key < 100; key += 2) {
        keys.push_back(key);
        for (int i = 0; i < 4; ++i) values.push_back(static_cast<float>(key) + static_cast<float>(i) / 4);
      }
      EXPECT_THAT(rows->AddRows(0, 4, keys, values), IsOk());
      manifest.files.push_back(*rows->Finish());
    }
    EXPECT_THAT(CheckpointStore(root_, "uid").Complete(manifest), IsOk());
    return manifest;
  }

  // Reads the whole checkpoint, checks it against the values of Write and counts sections.
  absl::Status ReadAll(const CheckpointManifest& manifest, std::map<uint64_t, float>* rows, int* spans) {
    CheckpointHandlers handlers;
    handlers.dense = [&](int32_t op, std::string_view, std::span<const float> weights, std::span<const float>) {
      EXPECT_EQ(weights[0], static_cast<float>(op) + 0.5f);
      ++*spans;
      return absl::OkStatus();
    };
    handlers.rows = [&](int32_t, int32_t width, std::span<const uint64_t> keys, std::span<const float> values) {
      for (size_t i = 0; i < keys.size(); ++i) (*rows)[keys[i]] = values[i * static_cast<size_t>(width)];
      return absl::OkStatus();
    };
    return ReadCheckpoint(root_, manifest, std::move(handlers));
  }

  fs::path root_;
};

TEST_F(CheckpointTest, ReadsBackWhatWasWritten) {
  const CheckpointManifest written = Write(7);
  const auto found = FindCheckpoint(root_, "uid", "print");
  ASSERT_THAT(found, IsOk());
  ASSERT_TRUE(found->manifest);
  EXPECT_EQ(*found->manifest, written);
  EXPECT_TRUE(found->rejected.empty());
  std::map<uint64_t, float> rows;
  int spans = 0;
  ASSERT_THAT(ReadAll(*found->manifest, &rows, &spans), IsOk());
  EXPECT_EQ(spans, 4);
  EXPECT_EQ(rows.size(), 100u);
  for (const auto& [key, value] : rows) EXPECT_EQ(value, static_cast<float>(key));
}

// Under another plan, a stage reads only operation 2, and one of three shards reads only its keys.
TEST_F(CheckpointTest, RestoresOntoAnotherPlan) {
  const CheckpointManifest manifest = Write(7);
  std::vector<std::string> spans;
  size_t mine = 0;
  CheckpointHandlers handlers;
  handlers.wanted_dense = [](int32_t op) { return op == 2; };
  handlers.dense = [&](int32_t op, std::string_view name, std::span<const float> weights, std::span<const float>) {
    spans.push_back(fmt::format("{}/{}/{}", op, name, weights.size()));
    return absl::OkStatus();
  };
  handlers.rows = [&](int32_t, int32_t, std::span<const uint64_t> keys, std::span<const float>) {
    mine += static_cast<size_t>(std::count_if(keys.begin(), keys.end(), [](uint64_t k) { return k % 3 == 1; }));
    return absl::OkStatus();
  };
  ASSERT_THAT(ReadCheckpoint(root_, manifest, std::move(handlers)), IsOk());
  EXPECT_THAT(spans, ElementsAre("2/weight/50", "2/bias/5"));
  EXPECT_EQ(mine, 33u);
}

TEST_F(CheckpointTest, FallsBackToTheOneBeforeAndSaysWhy) {
  Write(7);
  Write(9);
  Write(12);
  Damage(root_ / Folder(12) / RowsFileName(3, 1));
  fs::remove(root_ / Folder(9) / "manifest.json");
  const auto found = FindCheckpoint(root_, "uid", "print");
  ASSERT_THAT(found, IsOk());
  ASSERT_TRUE(found->manifest);
  EXPECT_EQ(found->manifest->step, 7);
  ASSERT_EQ(found->rejected.size(), 2u);
  EXPECT_THAT(found->rejected[0].reason, HasSubstr("step-00000012-e3: rows-e3-1.mck: its digest is"));
  EXPECT_THAT(found->rejected[1].reason, HasSubstr("step-00000009-e3: it has no manifest"));
}

TEST_F(CheckpointTest, IgnoresOtherJobsAndModels) {
  Write(7);
  EXPECT_FALSE(FindCheckpoint(root_, "other", "print")->manifest);
  EXPECT_FALSE(FindCheckpoint(root_, "uid", "other")->manifest);
  EXPECT_EQ(FindCheckpoint(root_, "other", "print")->rejected[0].why, RejectedCheckpoint::Why::kForeign);
  EXPECT_EQ(FindCheckpoint(root_, "uid", "other")->rejected[0].why, RejectedCheckpoint::Why::kUnusable);
}

TEST_F(CheckpointTest, AnUnfinishedFileLeavesNothing) {
  {
    auto writer = *CheckpointWriter::Create(root_, "step-00000001", Header(1));
    const std::vector<float> weights(10, 1.0f);
    ASSERT_THAT(writer->AddDense(0, "w", weights, {}), IsOk());
  }
  EXPECT_TRUE(fs::is_empty(root_ / "step-00000001"));
  EXPECT_THAT(CheckpointWriter::Create(root_, "a/b", Header(1)), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(CheckpointTest, AFolderThatCannotBeListedIsNotEmpty) {
  Write(7);
  EXPECT_THAT(FindCheckpoint(root_ / "absent", "uid", "print"), StatusIs(absl::StatusCode::kNotFound));
  FaultyFiles files;
  files.FailList(base::Internal("listing: i/o error"));
  EXPECT_THAT(FindCheckpoint({root_, files}, "uid", "print"), StatusIs(absl::StatusCode::kInternal));
}

// An error of the volume says nothing about the checkpoint: the caller decides whether to try again.
TEST_F(CheckpointTest, AnUnreadableCheckpointIsNotCalledDamaged) {
  Write(7);
  Write(9);
  FaultyFiles files;
  files.read_error_in = Folder(9) + "/rows-";
  const auto found = FindCheckpoint({root_, files}, "uid", "print");
  ASSERT_THAT(found, IsOk());
  EXPECT_EQ(found->manifest->step, 7);
  ASSERT_EQ(found->rejected.size(), 1u);
  EXPECT_EQ(found->rejected[0].why, RejectedCheckpoint::Why::kUnreadable);
  EXPECT_THAT(CheckpointStore({root_, files}, "uid").Prune(1), StatusIs(absl::StatusCode::kInternal));
  EXPECT_THAT(Complete(), ElementsAre(9, 7));
}

TEST_F(CheckpointTest, PruneKeepsTheNewest) {
  for (int64_t step : {1, 2, 3, 4}) Write(step);
  auto partial =
      CheckpointWriter::Create(root_, Folder(5), Header(5, 3, CheckpointFileKind::kDense, 9));  // still being written
  fs::create_directories(root_ / Folder(0));  // left over from a checkpoint that was never completed
  ASSERT_THAT(Prune(2), IsOk());
  EXPECT_THAT(Complete(), ElementsAre(4, 3));
  EXPECT_TRUE(fs::exists(root_ / Folder(5)));
  EXPECT_FALSE(fs::exists(root_ / Folder(0)));
}

// Only the best is kept beside the newest: a former one, and whatever else is old, makes room.
TEST_F(CheckpointTest, PruneKeepsTheBest) {
  CheckpointStore store(root_, "uid");
  for (int64_t step : {1, 2, 3, 4, 5}) Write(step);
  ASSERT_THAT(store.Prune(2, {}, Folder(2)), IsOk());
  EXPECT_THAT(Complete(), ElementsAre(5, 4, 2));
  Write(6);
  ASSERT_THAT(store.Prune(2, {}, Folder(4)), IsOk());
  EXPECT_THAT(Complete(), ElementsAre(6, 5, 4));
  ASSERT_THAT(store.Prune(2, {}, Folder(6)), IsOk());
  EXPECT_THAT(Complete(), ElementsAre(6, 5)) << "the best is one of the newest";
}

// If damaged checkpoints counted, pruning would delete the only ones that can be restored.
TEST_F(CheckpointTest, PruneCountsOnlyWhatVerifies) {
  for (int64_t step : {1, 2, 3, 4, 5}) Write(step);
  Damage(root_ / Folder(5) / RowsFileName(3, 0));
  fs::remove(root_ / Folder(4) / RowsFileName(3, 1));
  std::ofstream(root_ / ManifestOf(3)) << "{";
  ASSERT_THAT(Prune(1), IsOk());
  EXPECT_EQ(FindCheckpoint(root_, "uid", "print")->manifest->step, 2);
  EXPECT_FALSE(fs::exists(root_ / Folder(1)));
  for (int64_t step : {6, 7}) Write(step);
  ASSERT_THAT(Prune(2), IsOk());
  EXPECT_THAT(Complete(), ElementsAre(7, 6));
}

// The store does not compute a checksum again for a file that did not change, but notices when one did.
TEST_F(CheckpointTest, PruneNoticesDamageAfterItsFirstLook) {
  for (int64_t step : {1, 2, 3}) Write(step);
  CheckpointStore store(root_, "uid");
  ASSERT_THAT(store.Prune(3), IsOk());
  Damage(root_ / Folder(3) / RowsFileName(3, 0));
  ASSERT_THAT(store.Prune(2), IsOk());
  EXPECT_THAT(Complete(), ElementsAre(3, 2, 1));
  EXPECT_EQ(FindCheckpoint(root_, "uid", "print")->manifest->step, 2);
}

TEST_F(CheckpointTest, PruneLeavesOtherJobsAlone) {
  Write(1);
  Write(2);
  ASSERT_THAT(CheckpointStore(root_, "other").Prune(1), IsOk());
  EXPECT_THAT(Complete(), ElementsAre(2, 1));
}

// A member or a coordinator of generation 3 resumes after generation 4 has published the same step.
TEST_F(CheckpointTest, ALateWriterCannotTouchANewerGenerationsCheckpoint) {
  Write(7, 3);
  auto late = CheckpointWriter::Create(root_, Folder(9, 3), Header(9));
  ASSERT_THAT(late, IsOk());
  const CheckpointManifest published = Write(9, 4);
  const std::vector<float> weights(10, 1.0f);
  ASSERT_THAT((*late)->AddDense(0, "w", weights, {}), IsOk());
  CheckpointManifest stale = published;
  stale.generation = 3;
  stale.folder = Folder(9, 3);
  stale.files = {*(*late)->Finish()};
  EXPECT_THAT(CheckpointStore(root_, "uid").Complete(stale), IsOk());  // a deposed coordinator
  EXPECT_EQ(*FindCheckpoint(root_, "uid", "print")->manifest, published);
  Write(8, 4);  // generation 4 counts even where generation 3 was ahead
  stale.folder = Folder(9, 4);
  EXPECT_THAT(CheckpointStore(root_, "uid").Complete(stale), StatusIs(absl::StatusCode::kDataLoss));
  ASSERT_THAT(Prune(1), IsOk());
  EXPECT_THAT(Complete(), ElementsAre(9));
  EXPECT_FALSE(fs::exists(root_ / Folder(9, 3)));
}

TEST_F(CheckpointTest, StraysInAPublishedCheckpointAreIgnoredAndRemoved) {
  Write(7);
  std::ofstream(root_ / Folder(7) / "dense-e3-t1.mck.tmp.aBcDeF") << "half a file";
  std::ofstream(root_ / Folder(7) / DenseFileName(2, 1)) << "of an earlier generation";
  EXPECT_THAT(FindCheckpoint(root_, "uid", "print")->rejected, testing::IsEmpty());
  ASSERT_THAT(Prune(1), IsOk());
  int files = 0;
  for (const auto& entry : fs::directory_iterator(root_ / Folder(7))) files += entry.is_regular_file() ? 1 : 0;
  EXPECT_EQ(files, 4);  // three data files and the manifest
}

TEST_F(CheckpointTest, FolderNamesAreParsed) {
  for (const CheckpointName& name : {CheckpointName{0, 7, 0}, {3, 7, 0}, {3, 7, 2}, {12, 123456789012, 0}}) {
    EXPECT_THAT(ParseCheckpointFolder(CheckpointFolder(name)), base::IsOkAndHolds(name));
  }
  EXPECT_EQ(CheckpointFolder({3, 42, 1}), "step-00000042-e3-1");
  for (const char* bad :
       {"", "step-", "step-7", "step-00000007-", "step-00000007-e", "step-00000007-e0", "step-00000007-e3-",
        "step-00000007-e3-0", "step-00000007-e3-1-1", "step--0000001", "export"}) {
    EXPECT_THAT(ParseCheckpointFolder(bad), StatusIs(absl::StatusCode::kInvalidArgument)) << bad;
  }
}

TEST_F(CheckpointTest, ReadsTheFoldersOfEarlierVersions) {
  CheckpointManifest manifest = Write(7);
  fs::rename(root_ / manifest.folder, root_ / "step-00000007");
  manifest.folder = "step-00000007";
  ASSERT_THAT(base::WriteFileAtomic(root_ / manifest.folder / "manifest.json", ToJson(manifest)), IsOk());
  EXPECT_EQ(*FindCheckpoint(root_, "uid", "print")->manifest, manifest);
}

TEST_F(CheckpointTest, CompleteNeedsEveryFileAsItsWriterReportedIt) {
  CheckpointManifest manifest = Write(7);
  manifest.files.push_back({"absent.mck", 1, "2"});
  CheckpointStore store(root_, "uid");
  EXPECT_THAT(store.Complete(manifest), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("absent.mck")));
  manifest.files.pop_back();
  manifest.files[0].digest[0] ^= 1;
  EXPECT_THAT(store.Complete(manifest), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("its digest is")));
}

// Both the manifest's digest and the file's own sections detect any flipped bit and any truncation of a data file.
TEST_F(CheckpointTest, RandomDamageIsAlwaysNoticed) {
  const CheckpointManifest manifest = Write(7);
  base::Rng rng(20261121);
  for (int round = 0; round < 600; ++round) {
    const CheckpointFileEntry& entry = manifest.files[rng.Below(manifest.files.size())];
    const fs::path file = root_ / manifest.folder / entry.name;
    const std::string good = *base::ReadFile(file);
    std::string bad = good;
    const uint64_t kind = rng.Below(3);
    if (kind == 0) bad[rng.Below(bad.size())] ^= static_cast<char>(1 << rng.Below(8));
    if (kind == 1) bad.resize(rng.Below(bad.size()));
    if (kind == 2) bad.append(1 + rng.Below(40), static_cast<char>(rng.Below(256)));
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bad;
    EXPECT_THAT(VerifyCheckpoint(root_, manifest), StatusIs(absl::StatusCode::kDataLoss)) << "round " << round;
    CheckpointHandlers handlers;
    handlers.dense = [](auto&&...) { return absl::OkStatus(); };
    handlers.rows = [](auto&&...) { return absl::OkStatus(); };
    EXPECT_THAT(ReadCheckpoint(root_, manifest, std::move(handlers)), StatusIs(absl::StatusCode::kDataLoss))
        << "round " << round << " kind " << kind;
    std::ofstream(file, std::ios::binary | std::ios::trunc) << good;
  }
  EXPECT_THAT(VerifyCheckpoint(root_, manifest), IsOk());
}

TEST_F(CheckpointTest, DamagedManifestsAreRefused) {
  const CheckpointManifest manifest = Write(7);
  const std::string good = ToJson(manifest);
  ASSERT_EQ(*ParseManifest(good), manifest);
  base::Rng rng(7);
  for (int round = 0; round < 300; ++round) {
    std::string bad = good;
    bad[rng.Below(bad.size())] ^= static_cast<char>(1 << rng.Below(8));
    EXPECT_THAT(ParseManifest(bad), StatusIs(absl::StatusCode::kDataLoss)) << bad;
    EXPECT_THAT(ParseManifest(good.substr(0, rng.Below(good.size() - 3))), StatusIs(absl::StatusCode::kDataLoss));
  }
  EXPECT_THAT(ParseManifest(R"({"format": 3})"), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("format 3")));
}

}  // namespace
}  // namespace medley::worker
